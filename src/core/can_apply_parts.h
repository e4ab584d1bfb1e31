/* What the can_apply files share; for them alone. */
#ifndef ORBIT_CORE_CAN_APPLY_PARTS_H
#define ORBIT_CORE_CAN_APPLY_PARTS_H

#include "core/decision.h"
#include "core/model.h"

/* For the five decision events. NULL, or what does not fit; the event's place in the order has been checked. */
const char *check_decision(const struct task *task, const struct event *event);

#endif
