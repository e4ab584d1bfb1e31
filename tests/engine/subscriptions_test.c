/* Subscriptions through the engine: what a creation may say, reach, forward only, repeats, deletion; and what a reader of the
 * feed is let see. */
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codec/digest.h"
#include "core/feed.h"
#include "engine/internal.h"

static int open_world(void **context) {
  struct world *world = calloc(1, sizeof *world);
  world_open(world);
  *context = world;
  return 0;
}

static int close_world(void **context) {
  struct world *world = *context;
  world_check(world);
  world_close(world);
  free(world);
  return 0;
}

static struct command create(struct world *world, const struct principal *who, const char *name) {
  struct command command = {.kind = COMMAND_SUBSCRIPTION_CREATE, .who = *who};
  command.as.subscription.name = bytes_text(name);
  command.as.subscription.from = FEED_FROM_EARLIEST;
  world_identify(world, &command, name);
  return command;
}

static struct command other(struct world *world, enum command_kind kind, const struct id *id, uint64_t position,
                            const char *key) {
  struct command command = {.kind = kind, .who = world->who};
  command.as.subscription.id = *id;
  command.as.subscription.position = position;
  world_identify(world, &command, key);
  return command;
}

static struct answer done(struct world *world, struct command command) {
  struct answer answer = world_do(world, &command);
  if (answer.status != STATUS_OK) fail_msg("%s: %s", status_name(answer.status), answer.fault.message);
  return answer;
}

static void refused(struct world *world, struct command command, enum status status, const char *field) {
  uint64_t before = journal_last_seq(world->journal);
  struct answer answer = world_do(world, &command);
  if (answer.status != status || strcmp(answer.fault.field, field) != 0)
    fail_msg("%s %s: %s", status_name(answer.status), answer.fault.field, answer.fault.message);
  assert_int_equal(journal_last_seq(world->journal), before);
}

/* ---- making ---- */

static void it_begins_where_it_was_told(void **context) {
  struct world *world = *context;
  uint64_t end = journal_last_seq(world->journal);
  struct command command = create(world, &world->who, "a");
  assert_int_equal(done(world, command).as.subscription.position, 0);
  command = create(world, &world->who, "b");
  command.as.subscription.from = FEED_FROM_LATEST;
  world_identify(world, &command, "b");
  assert_int_equal(done(world, command).as.subscription.position, end + 2); /* creation and audit of the first */
  command = create(world, &world->who, "c");
  command.as.subscription.from = FEED_FROM_POSITION;
  command.as.subscription.position = end;
  world_identify(world, &command, "c");
  assert_int_equal(done(world, command).as.subscription.position, end);
  command.as.subscription.name = bytes_text("d");
  command.as.subscription.position = journal_last_seq(world->journal) + 1;
  world_identify(world, &command, "d");
  refused(world, command, STATUS_INVALID_ARGUMENT, "/from");
}

static void a_name_is_had_once(void **context) {
  struct world *world = *context;
  struct command command = create(world, &world->who, "a");
  struct id id = done(world, command).as.subscription.id;
  struct answer again = done(world, command); /* a repeat */
  assert_true(again.deduplicated && id_equal(&again.as.subscription.id, &id) && !again.created);
  world_identify(world, &command, "another key");
  refused(world, command, STATUS_STATE_CONFLICT, "/name");
  command.as.subscription.name = bytes_text("b");
  world_identify_operation(world, &command, "a");
  refused(world, command, STATUS_IDEMPOTENCY_CONFLICT, "");
  (void)done(world, other(world, COMMAND_SUBSCRIPTION_DELETE, &id, 0, "del"));
  command.as.subscription.name = bytes_text("a");
  world_identify(world, &command, "third key");
  struct id second = done(world, command).as.subscription.id;
  assert_false(id_equal(&second, &id));
}

static void a_filter_is_within_reach(void **context) {
  struct world *world = *context;
  struct task task = world_submitted(world, "t");
  struct command command = create(world, &world->who, "a");
  command.as.subscription.queue_id.bytes[3] = 9;
  world_identify(world, &command, "a");
  refused(world, command, STATUS_NOT_FOUND, "/queue_id");
  command.as.subscription.queue_id = world->other_queue_id;
  command.as.subscription.task_id = task.id;
  world_identify(world, &command, "a");
  refused(world, command, STATUS_NOT_FOUND, "/task_id"); /* it is in another queue */
  command.as.subscription.queue_id = (struct id){{0}};
  world_identify(world, &command, "a");
  struct subscription made = done(world, command).as.subscription;
  assert_true(id_equal(&made.task_id, &task.id) && id_equal(&made.queue_id, &world->queue_id));
  assert_true(done(world, command).deduplicated); /* though the engine filled in the queue */
}

static void a_narrow_credential_names_a_queue_of_its_own(void **context) {
  struct world *world = *context;
  struct command command = create(world, &world->narrow, "a");
  refused(world, command, STATUS_PERMISSION_DENIED, "/queue_id");
  command.as.subscription.queue_id = world->queue_id;
  world_identify(world, &command, "a");
  refused(world, command, STATUS_NOT_FOUND, "/queue_id");
  command.as.subscription.queue_id = world->narrow_queue_id;
  world_identify(world, &command, "a");
  struct id own = done(world, command).as.subscription.id;
  struct id wide = done(world, create(world, &world->who, "wide")).as.subscription.id;
  struct command get = {.kind = COMMAND_GET_SUBSCRIPTION, .who = world->narrow, .as.object_id = wide};
  refused(world, get, STATUS_NOT_FOUND, "");
  get.as.object_id = own;
  (void)done(world, get);
  struct command list = {.kind = COMMAND_LIST_OBJECTS, .who = world->narrow};
  list.as.list_objects = (struct list_objects_command){.list = LIST_SUBSCRIPTIONS, .limit = 10};
  struct answer answer = done(world, list);
  assert_int_equal(answer.as.list.count, 1);
  assert_true(id_equal(&answer.as.list.of.subscriptions[0].id, &own));
  free(answer.as.list.of.rows);
  struct command ack = other(world, COMMAND_SUBSCRIPTION_ACK, &wide, 1, "ack");
  ack.who = world->narrow;
  refused(world, ack, STATUS_NOT_FOUND, "");
}

/* ---- moving ---- */

static void it_moves_forward_only(void **context) {
  struct world *world = *context;
  struct id id = done(world, create(world, &world->who, "a")).as.subscription.id;
  struct command first = other(world, COMMAND_SUBSCRIPTION_ACK, &id, 5, "k5");
  assert_int_equal(done(world, first).as.subscription.position, 5);
  assert_int_equal(done(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, 9, "k9")).as.subscription.position, 9);
  struct answer repeat = done(world, first);
  assert_true(repeat.deduplicated && repeat.as.subscription.position == 5); /* as it stood then */
  assert_int_equal(done(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, 7, "k7")).as.subscription.position, 9);
  uint64_t end = journal_last_seq(world->journal);
  refused(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, end + 1, "far"), STATUS_INVALID_ARGUMENT, "/position");
  assert_int_equal(done(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, end, "end")).as.subscription.position, end);
  struct command reused = other(world, COMMAND_SUBSCRIPTION_ACK, &id, 8, "k7");
  refused(world, reused, STATUS_IDEMPOTENCY_CONFLICT, ""); /* though that ack moved nothing */
  world_restart(world);
  struct command get = {.kind = COMMAND_GET_SUBSCRIPTION, .who = world->who, .as.object_id = id};
  struct answer answer = done(world, get);
  assert_true(answer.as.subscription.position == end && answer.log_end == journal_last_seq(world->journal));
}

static int64_t thread_us(void) {
  struct timespec time;
  assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* The least that answering the repeat took of several times. */
static int64_t repeat_us(struct world *world, struct command command, uint64_t position, uint64_t revision) {
  int64_t least = INT64_MAX;
  for (unsigned i = 0; i < 10; i++) {
    int64_t before = thread_us();
    struct answer answer = done(world, command);
    int64_t took = thread_us() - before;
    assert_true(answer.deduplicated && !answer.as.subscription.deleted);
    assert_int_equal(answer.as.subscription.position, position);
    assert_int_equal(answer.as.subscription.revision, revision);
    if (took < least) least = took;
  }
  return least;
}

/* A reader acknowledges for months; who repeats one does not make Orbit read all of them. */
static void a_repeat_does_not_cost_a_life(void **context) {
  enum { acks = 4000 };
  struct world *world = *context;
  struct id id = done(world, create(world, &world->who, "a")).as.subscription.id;
  struct command first = other(world, COMMAND_SUBSCRIPTION_ACK, &id, 1, "k1"), last = first;
  for (unsigned i = 1; i <= acks; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "k%u", i);
    last = other(world, COMMAND_SUBSCRIPTION_ACK, &id, i, key);
    (void)done(world, last);
  }
  (void)repeat_us(world, first, 1, 2);
  int64_t early = repeat_us(world, first, 1, 2), late = repeat_us(world, last, acks, acks + 1);
  if (late > 20 * (early + 10)) fail_msg("%lld us for the last, %lld us for the first", (long long)late, (long long)early);
  struct command create_again = create(world, &world->who, "a");
  struct answer made = done(world, create_again);
  assert_true(made.deduplicated && made.as.subscription.position == 0 && made.as.subscription.revision == 1);
}

static void what_is_deleted_is_gone_but_for_repeats(void **context) {
  struct world *world = *context;
  struct id id = done(world, create(world, &world->who, "a")).as.subscription.id;
  struct command ack = other(world, COMMAND_SUBSCRIPTION_ACK, &id, 5, "k5");
  struct command end = other(world, COMMAND_SUBSCRIPTION_DELETE, &id, 0, "end");
  (void)done(world, ack);
  assert_int_equal(done(world, end).as.subscription.revision, 3);
  struct answer again = done(world, ack); /* as it stood then: not deleted */
  assert_true(again.deduplicated && !again.as.subscription.deleted && again.as.subscription.position == 5);
  again = done(world, end);
  assert_true(again.deduplicated && again.as.subscription.deleted && again.as.subscription.position == 5);
  assert_int_equal(again.as.subscription.revision, 3);
  refused(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, 6, "k6"), STATUS_NOT_FOUND, "");
  refused(world, other(world, COMMAND_SUBSCRIPTION_DELETE, &id, 0, "again"), STATUS_NOT_FOUND, "");
  struct command get = {.kind = COMMAND_GET_SUBSCRIPTION, .who = world->who, .as.object_id = id};
  refused(world, get, STATUS_NOT_FOUND, "");
  struct command open = {.kind = COMMAND_OPEN_FEED, .who = world->who, .as.open_feed.subscription_id = id};
  refused(world, open, STATUS_NOT_FOUND, "");
}

/* ---- reading ---- */

static void a_reader_begins_behind_what_was_acknowledged(void **context) {
  struct world *world = *context;
  struct command command = create(world, &world->who, "a");
  assert_true(feed_types_parse(bytes_text("task.failed"), &command.as.subscription.types));
  command.as.subscription.queue_id = world->queue_id;
  world_identify(world, &command, "a");
  struct id id = done(world, command).as.subscription.id;
  (void)done(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, 6, "k"));
  static const uint64_t rows[][2] = {{0, 6}, {6, 6}, {7, 7}}; /* Last-Event-ID, and where it begins */
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct command open = {.kind = COMMAND_OPEN_FEED, .who = world->who};
    open.as.open_feed = (struct open_feed_command){.subscription_id = id, .after = rows[i][0], .after_header = true};
    struct feed_opening opening = done(world, open).as.feed;
    assert_int_equal(opening.after, rows[i][1]);
    assert_true(feed_types_have(&opening.filter.types, EVENT_task_failed) &&
                !feed_types_have(&opening.filter.types, EVENT_task_accepted));
    assert_true(id_equal(&opening.filter.queue_id, &world->queue_id) && opening.scope == NULL);
  }
}

static void a_reader_of_the_feed_takes_its_scope_along(void **context) {
  struct world *world = *context;
  struct command open = {.kind = COMMAND_OPEN_FEED, .who = world->narrow};
  struct feed_opening opening = done(world, open).as.feed;
  assert_int_equal(opening.scope_count, 1);
  assert_true(id_equal(&opening.scope[0], &world->narrow_queue_id));
  free(opening.scope);
  open.as.open_feed.after = journal_last_seq(world->journal);
  free(done(world, open).as.feed.scope);
  open.as.open_feed.after++;
  refused(world, open, STATUS_INVALID_ARGUMENT, "after");
  open.as.open_feed.after_header = true;
  refused(world, open, STATUS_INVALID_ARGUMENT, "Last-Event-ID");
  open.as.open_feed = (struct open_feed_command){.filter.queue_id = world->queue_id};
  refused(world, open, STATUS_NOT_FOUND, "queue_id");
  open.as.open_feed = (struct open_feed_command){.filter.task_id = world_submitted(world, "t").id};
  refused(world, open, STATUS_NOT_FOUND, "task_id");
}

static void lag_is_in_the_metrics(void **context) {
  struct world *world = *context;
  struct id id = done(world, create(world, &world->who, "a")).as.subscription.id;
  (void)done(world, other(world, COMMAND_SUBSCRIPTION_ACK, &id, 4, "k"));
  struct command ask = {.kind = COMMAND_GET_METRICS, .who = world->who};
  struct metrics *metrics = done(world, ask).as.metrics;
  assert_int_equal(metrics->subscription_count, 1);
  assert_true(id_equal(&metrics->subscriptions[0].id, &id) && metrics->subscriptions[0].position == 4);
  assert_int_equal(metrics->log_end, journal_last_seq(world->journal));
  free(metrics);
  memset(ask.who.namespace_id.bytes, 4, id_bytes);
  metrics = done(world, ask).as.metrics;
  assert_int_equal(metrics->subscription_count, 0);
  free(metrics);
}

/* An armed watch is rung by the next commit, once; one that is not armed by none. */
static void a_commit_rings_what_is_armed(void **context) {
  struct world *world = *context;
  struct outbox outbox;
  struct watch watch = {.outbox = &outbox};
  uint64_t count;
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  engine_watch(world->engine, &watch);
  (void)world_submitted(world, "a");
  assert_int_equal(read(outbox.event_fd, &count, sizeof count), -1);
  atomic_store(&watch.armed, true);
  (void)world_submitted(world, "b");
  (void)world_submitted(world, "c");
  assert_int_equal(read(outbox.event_fd, &count, sizeof count), sizeof count);
  assert_int_equal(count, 1);
  assert_false(atomic_load(&watch.armed));
  assert_int_equal(engine_position(world->engine), journal_last_seq(world->journal));
  engine_unwatch(world->engine, &watch);
  outbox_clear(&outbox);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {
      ROW(it_begins_where_it_was_told),
      ROW(a_name_is_had_once),
      ROW(a_filter_is_within_reach),
      ROW(a_narrow_credential_names_a_queue_of_its_own),
      ROW(it_moves_forward_only),
      ROW(a_repeat_does_not_cost_a_life),
      ROW(what_is_deleted_is_gone_but_for_repeats),
      ROW(a_reader_begins_behind_what_was_acknowledged),
      ROW(a_reader_of_the_feed_takes_its_scope_along),
      ROW(lag_is_in_the_metrics),
      ROW(a_commit_rings_what_is_armed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
