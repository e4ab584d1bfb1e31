/* Finding values in JSON that a trusted writer made: the fast way for the load programs' hot loops. It judges nothing;
 * codec/json.h is for texts that may be wrong. */
#ifndef ORBIT_TOOLS_LOAD_SCAN_H
#define ORBIT_TOOLS_LOAD_SCAN_H

#include "base/bytes.h"

/* The value of the object's own member with this name, as written; data NULL: none. */
struct bytes scan_member(struct bytes object, const char *name);
/* A string member's text without its quotes (and with its escapes); data NULL: none. */
struct bytes scan_text(struct bytes object, const char *name);
bool scan_is_true(struct bytes object, const char *name);
/* The array's next item; *at starts at 0. False: no more. */
bool scan_item(struct bytes array, size_t *at, struct bytes *ret_item);

#endif
