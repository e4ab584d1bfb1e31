/* Owns the names of commands. */
#include "core/command.h"

#include <stddef.h>

static const char *const texts[COMMAND_KIND_COUNT] = {
    [COMMAND_SUBMIT] = "task.submit", [COMMAND_GET_TASK] = "task.get",        [COMMAND_GET_LOG_STATE] = "log.state",
    [COMMAND_HELLO] = "worker.hello", [COMMAND_CAPACITY] = "worker.capacity", [COMMAND_DRAIN] = "worker.drain",
    [COMMAND_BYE] = "worker.bye",     [COMMAND_START] = "task.start",         [COMMAND_RENEW] = "task.renew",
    [COMMAND_FINISH] = "task.finish", [COMMAND_RELEASE] = "task.release",     [COMMAND_CANCEL] = "task.cancel",
    [COMMAND_REVIEW] = "task.review", [COMMAND_RETRY] = "task.retry",
};

const char *command_kind_text(enum command_kind kind) {
  bool known = (unsigned)kind < COMMAND_KIND_COUNT && texts[kind] != NULL;
  return known ? texts[kind] : "";
}
