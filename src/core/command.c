/* Owns the names of commands. */
#include "core/command.h"

#include <stddef.h>

static const char *const texts[COMMAND_KIND_COUNT] = {
    [COMMAND_SUBMIT] = "task.submit",
    [COMMAND_GET_TASK] = "task.get",
    [COMMAND_GET_LOG_STATE] = "log.state",
    [COMMAND_HELLO] = "worker.hello",
    [COMMAND_CAPACITY] = "worker.capacity",
    [COMMAND_DRAIN] = "worker.drain",
    [COMMAND_BYE] = "worker.bye",
    [COMMAND_START] = "task.start",
    [COMMAND_RENEW] = "task.renew",
    [COMMAND_FINISH] = "task.finish",
    [COMMAND_RELEASE] = "task.release",
    [COMMAND_CANCEL] = "task.cancel",
    [COMMAND_REVIEW] = "task.review",
    [COMMAND_RETRY] = "task.retry",
    [COMMAND_BATCH] = "task.batch",
    [COMMAND_NAMESPACE_CREATE] = "namespace.create",
    [COMMAND_APPLICATION_CREATE] = "application.create",
    [COMMAND_APPLICATION_CHANGE] = "application.change",
    [COMMAND_QUEUE_CREATE] = "queue.create",
    [COMMAND_QUEUE_CHANGE] = "queue.change",
    [COMMAND_QUEUE_PAUSE] = "queue.pause",
    [COMMAND_QUEUE_RESUME] = "queue.resume",
    [COMMAND_CREDENTIAL_CREATE] = "credential.create",
    [COMMAND_CREDENTIAL_ROTATE] = "credential.rotate",
    [COMMAND_CREDENTIAL_REVOKE] = "credential.revoke",
    [COMMAND_SCHEDULE_CREATE] = "schedule.create",
    [COMMAND_SCHEDULE_CHANGE] = "schedule.change",
    [COMMAND_SCHEDULE_PAUSE] = "schedule.pause",
    [COMMAND_SCHEDULE_RESUME] = "schedule.resume",
    [COMMAND_SCHEDULE_DELETE] = "schedule.delete",
    [COMMAND_LIST_TASKS] = "task.list",
    [COMMAND_LIST_OBJECTS] = "object.list",
    [COMMAND_LIST_AUDIT] = "audit.list",
    [COMMAND_GET_QUEUE] = "queue.get",
    [COMMAND_GET_APPLICATION] = "application.get",
    [COMMAND_GET_CREDENTIAL] = "credential.get",
    [COMMAND_GET_SCHEDULE] = "schedule.get",
    [COMMAND_PREVIEW_TIMES] = "schedule.preview",
    [COMMAND_GET_METRICS] = "metrics.get",
    [COMMAND_SUBSCRIPTION_CREATE] = "subscription.create",
    [COMMAND_SUBSCRIPTION_ACK] = "subscription.ack",
    [COMMAND_SUBSCRIPTION_DELETE] = "subscription.delete",
    [COMMAND_GET_SUBSCRIPTION] = "subscription.get",
    [COMMAND_OPEN_FEED] = "feed.open",
};

const char *command_kind_text(enum command_kind kind) {
  bool known = (unsigned)kind < COMMAND_KIND_COUNT && texts[kind] != NULL;
  return known ? texts[kind] : "";
}
