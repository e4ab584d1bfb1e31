/* Vocabularies, permissions, event and command names: closed, unique, and the numbers that logs hold. */
#include "core/words.h"

#include <string.h>

#include "core/command.h"
#include "core/event.h"
#include "support/support.h"

#define CHECK_SET(set, prefix)                                       \
  static void check_##set(void) {                                    \
    for (unsigned i = 0; i <= prefix##_ENUM_END; i++) {              \
      const char *text = set##_text((enum set)i);                    \
      enum set word = prefix##_NONE;                                 \
      bool known = i > 0 && i < prefix##_ENUM_END;                   \
      assert_int_equal(text[0] != 0, known);                         \
      assert_int_equal(set##_parse(bytes_text(text), &word), known); \
      if (known) assert_int_equal(word, i);                          \
    }                                                                \
    enum set none = prefix##_NONE;                                   \
    assert_false(set##_parse(bytes_text("no such word"), &none));    \
    assert_int_equal(none, prefix##_NONE);                           \
  }
#define WORDS(set, prefix) CHECK_SET(set, prefix)
#define WORD(prefix, number, name)
#define WORDS_END(set, prefix)
#include "words.def"
#undef WORDS
#undef WORDS_END

static void words_read_back(void **state) {
  (void)state;
#define WORDS(set, prefix) check_##set();
#define WORDS_END(set, prefix)
#include "words.def"
#undef WORDS
#undef WORDS_END
}

static void numbers_in_logs_never_change(void **state) {
  (void)state;
  assert_int_equal(TASK_WAITING, 1);
  assert_int_equal(TASK_NEEDS_REVIEW, 4);
  assert_int_equal(TASK_CANCELLED, 7);
  assert_int_equal(ATTEMPT_REVOKED, 8);
  assert_int_equal(OUTCOME_CANCELLED, 4);
  assert_int_equal(ENDED_REVOKED, 6);
  assert_int_equal(RECOVERY_IDEMPOTENT, 2);
  assert_int_equal(DECISION_SUCCEEDED, 1);
  assert_int_equal(DECISION_CANCEL_CONFIRMED, 12);
  assert_int_equal(EVIDENCE_CONFLICTING_REPORT, 4);
  assert_int_equal(EVENT_node_started, 1);
  assert_int_equal(EVENT_task_accepted, 30);
  assert_int_equal(EVENT_evidence_recorded, 43);
  assert_int_equal(EVENT_audit_recorded, 50);
  assert_int_equal(PERMISSION_TASKS_SUBMIT, 0);
  assert_int_equal(PERMISSION_ROOT, 14);
}

static void events_have_names_and_versions(void **state) {
  (void)state;
  unsigned count = 0;
  for (unsigned i = 0; i < EVENT_type_end + 2U; i++) {
    enum event_type type = EVENT_none;
    const char *text = event_type_text((enum event_type)i);
    if (text[0] == 0) {
      assert_int_equal(event_type_version((enum event_type)i), 0);
      continue;
    }
    assert_true(event_type_parse(bytes_text(text), &type));
    assert_int_equal(type, i);
    assert_true(event_type_version(type) >= 1);
    count++;
  }
  enum event_type none = EVENT_none;
  assert_true(count >= 27);
  assert_false(event_type_parse(bytes_text(""), &none));
  assert_false(event_type_parse(bytes_text("task.Accepted"), &none));
}

static void permissions_imply(void **state) {
  (void)state;
#define BIT(name) (UINT64_C(1) << PERMISSION_##name)
  static const struct {
    uint64_t given, means;
  } cases[] = {
      {0, 0},
      {BIT(TASKS_SUBMIT), BIT(TASKS_SUBMIT)},
      {BIT(TASKS_READ), BIT(TASKS_READ)},             /* not the audit */
      {BIT(TASKS_AUDIT_READ), BIT(TASKS_AUDIT_READ)}, /* not the tasks */
      {BIT(QUEUES_MANAGE), BIT(QUEUES_MANAGE) | BIT(QUEUES_READ)},
      {BIT(QUEUES_READ), BIT(QUEUES_READ)},
      {BIT(SCHEDULES_MANAGE), BIT(SCHEDULES_MANAGE) | BIT(SCHEDULES_READ)},
      {BIT(ADMIN), BIT(ADMIN) | BIT(QUEUES_MANAGE) | BIT(QUEUES_READ) | BIT(SCHEDULES_MANAGE) | BIT(SCHEDULES_READ) |
                       BIT(METRICS_READ)}, /* and nothing on tasks */
      {BIT(ROOT), BIT(ROOT)},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(permissions_expand(cases[i].given), cases[i].means);
  for (unsigned i = 0; i < PERMISSION_COUNT; i++) {
    enum permission permission = PERMISSION_COUNT;
    assert_true(permission_parse(bytes_text(permission_text((enum permission)i)), &permission));
    assert_int_equal(permission, i);
  }
  enum permission none = PERMISSION_COUNT;
  assert_false(permission_parse(bytes_text("tasks:everything"), &none));
}

static void commands_have_names(void **state) {
  (void)state;
  static const struct {
    enum command_kind kind;
    const char *name;
  } audited[] = {
      /* audit records and operation identities hold these: they never change */
      {COMMAND_SUBMIT, "task.submit"},   {COMMAND_START, "task.start"},   {COMMAND_FINISH, "task.finish"},
      {COMMAND_RELEASE, "task.release"}, {COMMAND_CANCEL, "task.cancel"}, {COMMAND_REVIEW, "task.review"},
      {COMMAND_RETRY, "task.retry"},
  };
  for (size_t i = 0; i < sizeof audited / sizeof audited[0]; i++)
    assert_string_equal(command_kind_text(audited[i].kind), audited[i].name);
  for (unsigned i = COMMAND_SUBMIT; i < COMMAND_KIND_COUNT; i++) {
    const char *name = command_kind_text((enum command_kind)i);
    assert_non_null(strchr(name, '.'));
    for (unsigned k = COMMAND_SUBMIT; k < i; k++) assert_string_not_equal(command_kind_text((enum command_kind)k), name);
  }
  assert_string_equal(command_kind_text((enum command_kind)0), "");
  assert_string_equal(command_kind_text(COMMAND_KIND_COUNT), "");
}

static struct event_list list;

static void a_lists_texts_live_until_its_next_use(void **state) {
  (void)state;
  struct id id = {{1}};
  for (unsigned round = 0; round < 100; round++) { /* the scratch begins anew with each use */
    list.count = 0;
    (void)event_list_add(&list, EVENT_task_retried, &id, &id, &id);
    struct bytes first = event_list_text(&list, "%s-%u", "first", round);
    struct bytes second = event_list_text(&list, "%0*u", 400, round);
    assert_int_equal(second.size, 400);
    assert_int_equal(first.size, round < 10 ? 7 : 8);
    assert_memory_equal(first.data, "first-", 6);
    assert_true(second.data >= first.data + first.size);
  }
}

static void a_new_event_is_zero_but_for_its_names(void **state) {
  (void)state;
  struct id stream = {{1}}, operation_id = {{2}}, actor = {{3}};
  memset(&list, 0xA5, sizeof list);
  list.count = 0;
  struct event *event = event_list_add(&list, EVENT_task_failed, &stream, &operation_id, &actor);
  assert_int_equal(list.count, 1);
  assert_int_equal(event->type, EVENT_task_failed);
  assert_int_equal(event->version, event_type_version(EVENT_task_failed));
  assert_true(id_equal(&event->stream, &stream) && id_equal(&event->common.operation_id, &operation_id) &&
              id_equal(&event->common.actor, &actor));
  assert_true(id_is_zero(&event->common.identity) && event->common.revision == 0 && event->seq == 0 && event->time_us == 0);
  assert_true(event->body.task_failed.state == TASK_NONE && event->body.task_failed.delay_ms == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_read_back),
      cmocka_unit_test(numbers_in_logs_never_change),
      cmocka_unit_test(events_have_names_and_versions),
      cmocka_unit_test(permissions_imply),
      cmocka_unit_test(commands_have_names),
      cmocka_unit_test(a_lists_texts_live_until_its_next_use),
      cmocka_unit_test(a_new_event_is_zero_but_for_its_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
