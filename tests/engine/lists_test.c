/* Lists: filters, pages while everything moves, tenants apart, bounded looks. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

static int open_world(void **context) {
  struct world *world = malloc(sizeof *world);
  world_open(world);
  *context = world;
  return 0;
}

static int close_world(void **context) {
  world_check(*context);
  world_close(*context);
  free(*context);
  return 0;
}

struct made {
  struct id id;
  unsigned number;
};

/* Submissions of a known pattern, a millisecond apart: number n has handler "h<n%3>", business key "b<n%5>" and one of two
 * queues. */
static void submit_pattern(struct world *world, struct made *made, unsigned count, const struct principal *who) {
  for (unsigned n = 0; n < count; n++) {
    char key[16], handler[8], business[8];
    (void)snprintf(key, sizeof key, "p%u", n);
    (void)snprintf(handler, sizeof handler, "h%u", n % 3);
    (void)snprintf(business, sizeof business, "b%u", n % 5);
    struct command command = world_submit(world, key);
    command.who = *who;
    command.as.submit.handler = bytes_text(handler);
    if (n % 7 != 0) command.as.submit.business_key = bytes_text(business);
    command.as.submit.queue_id = n % 2 != 0 ? world->other_queue_id : world->queue_id;
    world_identify(world, &command, key);
    world->now_us += 1000;
    struct answer answer = world_do(world, &command);
    assert_int_equal(answer.status, STATUS_OK);
    made[n] = (struct made){answer.as.task.id, n};
  }
}

/* All pages of the filters; ids in order. */
static unsigned all_pages(struct world *world, const struct principal *who, struct list_tasks_command filters, struct id *ids,
                          unsigned most) {
  unsigned count = 0;
  for (unsigned pages = 0;; pages++) {
    struct command command = {.kind = COMMAND_LIST_TASKS, .who = *who, .as.list_tasks = filters};
    struct answer answer = world_do(world, &command);
    assert_int_equal(answer.status, STATUS_OK);
    struct answer_list *list = &answer.as.list;
    assert_true(list->count <= filters.limit && pages < 10000);
    for (uint32_t i = 0; i < list->count; i++) {
      assert_true(count < most);
      ids[count++] = list->of.tasks[i].id;
    }
    free(list->of.rows);
    if (!list->more) return count;
    filters.after = list->next;
  }
}

enum { pattern = 210 };

static void each_filter_and_all_together(void **context) {
  struct world *world = *context;
  struct made made[pattern];
  struct id ids[pattern];
  int64_t start = world->now_us;
  submit_pattern(world, made, pattern, &world->who);
  for (unsigned n = 0; n < pattern; n += 4) { /* some are over */
    struct command cancel = world_cancel(world, &made[n].id, "c");
    assert_int_equal(world_do(world, &cancel).status, STATUS_OK);
  }
  static const uint32_t limits[] = {1, 7, 100};
  for (unsigned mask = 0; mask < 64; mask++) {
    struct list_tasks_command filters = {.limit = limits[mask % 3]};
    if (mask & 1) filters.queue_id = world->other_queue_id;
    if (mask & 2) filters.state = TASK_CANCELLED;
    if (mask & 4) filters.handler = bytes_text("h1");
    if (mask & 8) filters.business_key = bytes_text("b2");
    if (mask & 16) filters.created_after = start + 50 * 1000;   /* strictly: number 50 and later */
    if (mask & 32) filters.created_before = start + 150 * 1000; /* strictly: number 148 and earlier */
    unsigned found = all_pages(world, &world->who, filters, ids, pattern), expected = 0;
    for (unsigned n = pattern; n-- > 0;) {
      bool match = (!(mask & 1) || n % 2 != 0) && (!(mask & 2) || n % 4 == 0) && (!(mask & 4) || n % 3 == 1) &&
                   (!(mask & 8) || (n % 5 == 2 && n % 7 != 0)) && (!(mask & 16) || n >= 50) && (!(mask & 32) || n <= 148);
      if (!match) continue;
      assert_true(expected < found && id_equal(&ids[expected], &made[n].id)); /* newest first */
      expected++;
    }
    assert_int_equal(found, expected);
  }
}

static void what_nobody_has_finds_nothing(void **context) {
  struct world *world = *context;
  struct made made[20];
  struct id ids[20];
  submit_pattern(world, made, 20, &world->who);
  struct list_tasks_command filters = {.limit = 10, .handler = bytes_text("h")};
  assert_int_equal(all_pages(world, &world->who, filters, ids, 20), 0);
  filters = (struct list_tasks_command){.limit = 10, .business_key = bytes_text("b")};
  assert_int_equal(all_pages(world, &world->who, filters, ids, 20), 0);
  filters = (struct list_tasks_command){.limit = 10, .state = TASK_RUNNING};
  assert_int_equal(all_pages(world, &world->who, filters, ids, 20), 0);
  struct command command = {.kind = COMMAND_LIST_TASKS, .who = world->who, .as.list_tasks = {.limit = 10}};
  command.as.list_tasks.after.bytes[0] = 9; /* a task that never was */
  assert_int_equal(world_do(world, &command).status, STATUS_INVALID_ARGUMENT);
  command.as.list_tasks = (struct list_tasks_command){.limit = 10, .queue_id = world->application_id};
  assert_int_equal(world_do(world, &command).status, STATUS_NOT_FOUND);
}

/* Pages while a thousand tasks change state, new ones come and Orbit restarts: each that was there from the beginning comes
 * once. */
static void nobody_twice_nobody_left_out(void **context) {
  struct world *world = *context;
  enum { many = 1000 };
  uint64_t seed = test_seed();
  struct batch_item *items = calloc(many, sizeof *items);
  for (unsigned i = 0; i < many; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "m%u", i);
    items[i].command = world_submit(world, key);
  }
  struct command batch = {.kind = COMMAND_BATCH, .who = world->who, .as.batch = {items, many}};
  assert_int_equal(world_do(world, &batch).status, STATUS_OK);
  unsigned next = many, rows = 0;
  struct list_tasks_command filters = {.limit = 37};
  for (bool more = true; more;) {
    for (unsigned i = 0; i < 40; i++) {
      struct command cancel = world_cancel(world, &items[test_random(&seed) % many].answer.as.task.id, "c");
      (void)world_do(world, &cancel);
    }
    (void)world_hello(world, 1, (uint32_t)(test_random(&seed) % 30 + 1));
    world_bye(world, 1);
    world_forget(world);
    if (test_random(&seed) % 8 == 0) world_restart(world);
    char key[16];
    (void)snprintf(key, sizeof key, "n%u", rows);
    (void)world_submitted(world, key); /* newer than the first page: may come or not */
    struct command list = {.kind = COMMAND_LIST_TASKS, .who = world->who, .as.list_tasks = filters};
    struct answer answer = world_do(world, &list);
    assert_int_equal(answer.status, STATUS_OK);
    for (uint32_t i = 0; i < answer.as.list.count; i++) {
      if (next == many && !id_equal(&answer.as.list.of.tasks[i].id, &items[many - 1].answer.as.task.id)) continue;
      assert_true(next > 0 && id_equal(&answer.as.list.of.tasks[i].id, &items[--next].answer.as.task.id));
    }
    rows += answer.as.list.count;
    more = answer.as.list.more;
    filters.after = answer.as.list.next;
    free(answer.as.list.of.rows);
  }
  assert_int_equal(next, 0);
  free(items);
}

/* ---- tenants and scopes ---- */

static struct principal make_namespace(struct world *world, const char *token) {
  uint8_t hash[token_hash_bytes];
  struct fault fault = {0};
  struct principal who;
  struct command create = {.kind = COMMAND_NAMESPACE_CREATE, .who = world->root};
  token_hash(bytes_text(token), hash);
  create.as.namespace_.name = bytes_text(token);
  create.as.namespace_.token_hash = bytes_of(hash, token_hash_bytes);
  world_identify(world, &create, token);
  assert_int_equal(world_do(world, &create).status, STATUS_OK);
  assert_int_equal(directory_authenticate(engine_directory(world->engine), bytes_text(token), world->now_us, &who, &fault),
                   STATUS_OK);
  return who;
}

static void tenants_do_not_see_each_other(void **context) {
  struct world *world = *context;
  struct made made[30];
  struct id ids[64];
  struct principal tenant = make_namespace(world, "tenant");
  struct command queue = world_queue(world, COMMAND_QUEUE_CREATE, NULL);
  queue.who = tenant;
  queue.as.queue.name = bytes_text("theirs");
  world_identify(world, &queue, "q");
  struct id queue_id = world_do(world, &queue).as.queue.id;
  submit_pattern(world, made, 30, &world->who);
  for (unsigned n = 0; n < 5; n++) { /* the same handler and business key as ours */
    char key[8] = {'t', (char)('0' + n), 0};
    struct command command = world_submit(world, key);
    command.who = tenant;
    command.as.submit.queue_id = queue_id;
    command.as.submit.handler = bytes_text("h1");
    command.as.submit.business_key = bytes_text("b2");
    world_identify(world, &command, key);
    assert_int_equal(world_do(world, &command).status, STATUS_OK);
  }
  struct list_tasks_command filters = {.limit = 3};
  assert_int_equal(all_pages(world, &tenant, filters, ids, 64), 5);
  assert_int_equal(all_pages(world, &world->who, filters, ids, 64), 30);
  assert_int_equal(all_pages(world, &world->narrow, filters, ids, 64), 0); /* out of its scope */
  filters.business_key = bytes_text("b2");
  assert_int_equal(all_pages(world, &tenant, filters, ids, 64), 5);
  assert_int_equal(all_pages(world, &world->who, filters, ids, 64), 5); /* 2, 12, 17, 22, 27: 7 has none */
  struct command list = {.kind = COMMAND_LIST_TASKS, .who = tenant, .as.list_tasks = {.limit = 3, .queue_id = world->queue_id}};
  assert_int_equal(world_do(world, &list).status, STATUS_NOT_FOUND);
  list.who = world->narrow;
  assert_int_equal(world_do(world, &list).status, STATUS_NOT_FOUND);
}

/* A rare filter over a long history: each page looks at a bounded number, says that more may follow, and in the end all is
 * found. */
static void looks_are_bounded(void **context) {
  struct world *world = *context;
  enum { many = 25 }; /* thousands */
  struct id needle = world_submitted(world, "needle").id;
  struct batch_item *items = calloc(batch_items_max, sizeof *items);
  for (unsigned round = 0; round < many; round++) {
    for (unsigned i = 0; i < batch_items_max; i++) {
      char key[16];
      (void)snprintf(key, sizeof key, "x%u-%u", round, i);
      items[i] = (struct batch_item){.command = world_submit(world, key)};
      items[i].command.as.submit.handler = bytes_text("other");
      world_identify(world, &items[i].command, key);
    }
    struct command batch = {.kind = COMMAND_BATCH, .who = world->who, .as.batch = {items, batch_items_max}};
    assert_int_equal(world_do(world, &batch).status, STATUS_OK);
  }
  free(items);
  struct list_tasks_command filters = {.limit = 10, .handler = bytes_text("h")};
  unsigned pages = 0, rows = 0;
  for (bool more = true; more; pages++) {
    struct command list = {.kind = COMMAND_LIST_TASKS, .who = world->who, .as.list_tasks = filters};
    struct answer answer = world_do(world, &list);
    assert_int_equal(answer.status, STATUS_OK);
    rows += answer.as.list.count;
    if (answer.as.list.count != 0) assert_true(id_equal(&answer.as.list.of.tasks[0].id, &needle));
    more = answer.as.list.more;
    if (more) assert_false(id_is_zero(&answer.as.list.next));
    filters.after = answer.as.list.next;
    free(answer.as.list.of.rows);
  }
  assert_int_equal(rows, 1);
  assert_true(pages >= 3);
}

/* ---- objects and audit ---- */

static unsigned list_objects(struct world *world, const struct principal *who, enum object_list kind, uint32_t limit,
                             struct id *ids) {
  unsigned count = 0;
  struct list_objects_command filters = {.list = kind, .limit = limit};
  for (;;) {
    struct command command = {.kind = COMMAND_LIST_OBJECTS, .who = *who, .as.list_objects = filters};
    struct answer answer = world_do(world, &command);
    assert_int_equal(answer.status, STATUS_OK);
    const struct answer_list *list = &answer.as.list;
    for (uint32_t i = 0; i < list->count; i++) {
      assert_true(count < 64);
      ids[count++] = kind == LIST_QUEUES         ? list->of.queues[i].id
                     : kind == LIST_APPLICATIONS ? list->of.applications[i].id
                     : kind == LIST_CREDENTIALS  ? list->of.credentials[i].id
                                                 : list->of.namespaces[i];
      if (kind == LIST_CREDENTIALS) assert_null(list->of.credentials[i].queue_ids);
    }
    free(list->of.rows);
    free(list->oldest_waiting_at);
    if (!list->more) return count;
    filters.after = list->next;
  }
}

static void objects_page_oldest_first(void **context) {
  struct world *world = *context;
  struct id ids[64];
  struct principal tenant = make_namespace(world, "tenant");
  for (uint32_t limit = 1; limit <= 5; limit++) {
    assert_int_equal(list_objects(world, &world->who, LIST_QUEUES, limit, ids), 3);
    assert_true(id_equal(&ids[0], &world->queue_id) && id_equal(&ids[1], &world->other_queue_id) &&
                id_equal(&ids[2], &world->narrow_queue_id));
    assert_int_equal(list_objects(world, &world->narrow, LIST_QUEUES, limit, ids), 1);
    assert_true(id_equal(&ids[0], &world->narrow_queue_id));
    assert_int_equal(list_objects(world, &world->who, LIST_APPLICATIONS, limit, ids), 2);
    assert_int_equal(list_objects(world, &world->who, LIST_CREDENTIALS, limit, ids), 3); /* the root's is not among them */
    assert_int_equal(list_objects(world, &tenant, LIST_QUEUES, limit, ids), 0);
    assert_int_equal(list_objects(world, &tenant, LIST_APPLICATIONS, limit, ids), 1);
    assert_int_equal(list_objects(world, &tenant, LIST_CREDENTIALS, limit, ids), 1);
    assert_true(id_equal(&ids[0], &tenant.credential_id));
    assert_int_equal(list_objects(world, &world->root, LIST_NAMESPACES, limit, ids), 2);
    assert_true(id_equal(&ids[0], &world->namespace_id) && id_equal(&ids[1], &tenant.namespace_id));
  }
}

static unsigned list_audit(struct world *world, const struct principal *who, const struct id *target, uint32_t limit,
                           uint64_t *seqs) {
  unsigned count = 0;
  struct list_audit_command filters = {.limit = limit};
  if (target != NULL) filters.target_id = *target;
  for (;;) {
    struct command command = {.kind = COMMAND_LIST_AUDIT, .who = *who, .as.list_audit = filters};
    struct answer answer = world_do(world, &command);
    assert_int_equal(answer.status, STATUS_OK);
    const struct answer_list *list = &answer.as.list;
    for (uint32_t i = 0; i < list->count; i++) {
      assert_true(count < 64 && (count == 0 || list->of.seqs[i] < seqs[count - 1])); /* newest first */
      seqs[count++] = list->of.seqs[i];
    }
    free(list->of.rows);
    if (!list->more) return count;
    filters.before_seq = list->next_seq;
  }
}

static void audit_of_administration(void **context) {
  struct world *world = *context;
  uint64_t seqs[64];
  struct principal tenant = make_namespace(world, "tenant"); /* three records, of theirs */
  for (unsigned i = 0; i < 6; i++) world_pause(world, i % 2 != 0 ? &world->other_queue_id : &world->queue_id, i / 2 % 2 == 0);
  struct task task = world_submitted(world, "k"); /* a task's audit is listed with the task, not here */
  struct command cancel = world_cancel(world, &task.id, "c");
  (void)world_do(world, &cancel);
  for (unsigned round = 0; round < 2; round++) {
    for (uint32_t limit = 1; limit <= 7; limit++) {
      assert_int_equal(list_audit(world, &world->who, NULL, limit, seqs), 6);
      assert_int_equal(list_audit(world, &world->who, &world->queue_id, limit, seqs), 3);
      assert_int_equal(list_audit(world, &tenant, NULL, limit, seqs), 3);
      assert_int_equal(list_audit(world, &tenant, &world->queue_id, limit, seqs), 0);
    }
    world_restart(world);
  }
}

/* A clock that stands, or went back: each server comes up in the millisecond of the log's last event. */
static void ids_rise_over_starts_in_one_millisecond(void **context) {
  struct world *world = *context;
  struct id last = {{0}};
  for (unsigned start = 0; start < 16; start++) {
    for (unsigned i = 0; i < 3; i++) {
      char key[16];
      (void)snprintf(key, sizeof key, "s%u-%u", start, i);
      struct task task = world_submitted(world, key);
      assert_true(id_compare(&last, &task.id) < 0);
      last = task.id;
    }
    world_restart(world);
  }
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(each_filter_and_all_together),
      ROW(what_nobody_has_finds_nothing),
      ROW(nobody_twice_nobody_left_out),
      ROW(tenants_do_not_see_each_other),
      ROW(looks_are_bounded),
      ROW(objects_page_oldest_first),
      ROW(audit_of_administration),
      ROW(ids_rise_over_starts_in_one_millisecond),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
