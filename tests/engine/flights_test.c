/* A commit on its way while the next tick decides: what a tick says leaves when its commit is durable and not before, in the
 * order of the ticks; what has seen it waits with it; a commit that fails is the end of all that waits behind it. The disk is
 * held by whoever holds the log's one place for a writer. */
#include "engine/world.h"

#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "engine/internal.h"
#include "journal/internal.h"

enum { tickets_max = 256 };

/* A world whose disk can be held, with tickets that are asked one by one. */
struct stage {
  struct world world;
  MDB_txn *held;
  struct ticket tickets[tickets_max];
  uint32_t asked, back; /* back: of `asked`, how many have come back; in order */
};

static struct stage *stage_open(void) {
  struct stage *stage = calloc(1, sizeof *stage);
  world_open(&stage->world);
  stage->world.company_min = 1;
  world_restart(&stage->world);
  return stage;
}

static void hold(struct stage *stage) { assert_int_equal(mdb_txn_begin(stage->world.journal->env, NULL, 0, &stage->held), 0); }

static void let_go(struct stage *stage) {
  mdb_txn_abort(stage->held);
  stage->held = NULL;
}

static struct ticket *ask(struct stage *stage, const struct command *command) {
  struct fault fault = {0};
  struct ticket *ticket = &stage->tickets[stage->asked++];
  assert_in_range(stage->asked, 1, tickets_max);
  *ticket = (struct ticket){.home = &stage->world.outbox, .command = *command, .gauge = &stage->world.gauges[1]};
  assert_int_equal(engine_submit(stage->world.engine, ticket, &fault), STATUS_OK);
  return ticket;
}

static void collect(struct stage *stage) {
  for (struct mail *mail = outbox_take(&stage->world.outbox), *next; mail != NULL; mail = next) {
    next = mail->next;
    if (mail->kind != MAIL_TICKET) {
      stage->world.pushes[stage->world.push_count++] = (struct push *)mail;
      continue;
    }
    assert_ptr_equal(mail, &stage->tickets[stage->back].mail); /* in the order in which they went in */
    stage->back++;
  }
}

static enum status tick(struct stage *stage) {
  struct fault fault = {0};
  bool busy;
  enum status status = engine_tick(stage->world.engine, stage->world.now_us, &stage->world.next_us, &busy, &fault);
  stage->world.now_us += 1000;
  collect(stage);
  return status;
}

static void land(struct stage *stage) {
  struct fault fault = {0};
  assert_int_equal(engine_land(stage->world.engine, true, &fault), STATUS_OK);
  collect(stage);
  assert_int_equal(stage->world.engine->flights.count, 0);
  assert_int_equal(stage->back, stage->asked);
}

static void stage_close(struct stage *stage) {
  world_check(&stage->world);
  world_close(&stage->world);
  free(stage);
}

/* Each is asked in a tick of its own. */
static void ask_some(struct stage *stage, const char *name, unsigned count) {
  char key[32];
  for (unsigned i = 0; i < count; i++) {
    (void)snprintf(key, sizeof key, "%s-%u", name, i);
    struct command command = world_submit(&stage->world, key);
    (void)ask(stage, &command);
    assert_int_equal(tick(stage), STATUS_OK);
  }
}

static void test_answers_wait_for_their_commit(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  uint64_t before = engine_position(stage->world.engine);
  hold(stage);
  ask_some(stage, "a", 5);
  assert_int_equal(stage->back, 0);
  assert_int_equal(stage->world.engine->flights.count, 5);
  assert_int_equal(engine_position(stage->world.engine), before); /* what is not durable is not told */
  assert_int_equal(journal_last_seq(stage->world.journal), before);
  assert_int_equal(state_task_count(stage->world.engine->state), 5); /* but it is decided */
  let_go(stage);
  land(stage);
  assert_int_equal(engine_position(stage->world.engine), journal_last_seq(stage->world.journal));
  for (uint32_t i = 0; i < stage->asked; i++) assert_true(stage->tickets[i].answer.created);
  stage_close(stage);
}

/* Where commits are quick, whoever comes in company waits for them too; where they take as long as told, nobody does, and a
 * disk that has become quick again is waited for again, once what is on its way has landed. */
static void test_a_quick_disk_is_waited_for(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  struct engine *engine = stage->world.engine;
  engine->slow_disk_us = engine->commit_us = 3000000;
  engine_committed(engine, 2999992);
  assert_int_equal(engine->commit_us, 2999999);
  ask_some(stage, "quick", 1);
  assert_int_equal(stage->back, 1);
  assert_int_equal(engine->flights.count, 0);
  engine->commit_us = 3000000;
  hold(stage);
  ask_some(stage, "slow", 2);
  assert_int_equal(stage->back, 1);
  assert_int_equal(engine->flights.count, 2);
  let_go(stage);
  land(stage);
  assert_true(engine->commit_us < 3000000);
  ask_some(stage, "quick again", 1);
  assert_int_equal(stage->back, 4);
  stage_close(stage);
}

/* A tick without events has seen what is on its way: a task that is not durable is not shown. A refusal, a repeat: the same. */
static void test_reads_wait_for_what_they_saw(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  struct command submit = world_submit(&stage->world, "one"), read = {.kind = COMMAND_GET_TASK, .who = stage->world.who};
  hold(stage);
  struct ticket *first = ask(stage, &submit);
  assert_int_equal(tick(stage), STATUS_OK);
  read.as.task_id = first->answer.as.task.id; /* nobody can know it yet; that is the point */
  struct ticket *reader = ask(stage, &read);
  assert_int_equal(tick(stage), STATUS_OK);
  struct ticket *again = ask(stage, &submit);
  assert_int_equal(tick(stage), STATUS_OK);
  assert_int_equal(stage->world.engine->flights.count, 1); /* they made no commit, and wait for that one */
  assert_int_equal(stage->back, 0);
  let_go(stage);
  land(stage);
  assert_int_equal(reader->answer.status, STATUS_OK);
  assert_true(again->answer.deduplicated); /* its receipt was read from the commit on its way */
  assert_true(id_equal(&again->answer.as.task.id, &first->answer.as.task.id));
  /* With nothing on its way a read is answered in its tick. */
  (void)ask(stage, &read);
  assert_int_equal(tick(stage), STATUS_OK);
  assert_int_equal(stage->back, stage->asked);
  stage_close(stage);
}

/* What workers are told leaves with the commit that says so, and what they say next is decided on it. */
static void test_pushes_wait(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  struct command hello = world_hello_command(&stage->world, 1, 10), submit = world_submit(&stage->world, "work");
  (void)ask(stage, &hello);
  assert_int_equal(tick(stage), STATUS_OK);
  land(stage);
  hold(stage);
  (void)ask(stage, &submit);
  assert_int_equal(tick(stage), STATUS_OK);
  assert_int_equal(world_count(&stage->world, MAIL_ASSIGN, 1), 0);
  let_go(stage);
  land(stage);
  const struct push *assign = world_take(&stage->world, MAIL_ASSIGN, 1);
  assert_non_null(assign);
  hold(stage);
  struct command start = world_ref(&stage->world, COMMAND_START, assign);
  struct ticket *started = ask(stage, &start);
  assert_int_equal(tick(stage), STATUS_OK);
  struct command finish = world_finish(&stage->world, assign, OUTCOME_SUCCEEDED, false);
  struct ticket *finished = ask(stage, &finish);
  assert_int_equal(tick(stage), STATUS_OK);
  struct ticket *repeated = ask(stage, &finish);
  assert_int_equal(tick(stage), STATUS_OK);
  assert_int_equal(stage->asked - stage->back, 3);
  let_go(stage);
  land(stage);
  assert_int_equal(started->answer.status, STATUS_OK);
  assert_int_equal(finished->answer.as.worker.task_state, TASK_SUCCEEDED);
  assert_int_equal(repeated->answer.status, STATUS_OK);
  assert_int_equal(repeated->answer.as.worker.task_state, TASK_SUCCEEDED);
  stage_close(stage);
}

/* Who is let in changes when the change is durable: the tick that makes it waits, and what was before it lands first. */
static void test_directory_waits(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  ask_some(stage, "before", 3);
  struct command revoke = world_credential(&stage->world, COMMAND_CREDENTIAL_REVOKE, &stage->world.narrow.credential_id);
  world_identify(&stage->world, &revoke, "revoke");
  (void)ask(stage, &revoke);
  assert_int_equal(tick(stage), STATUS_OK);
  assert_int_equal(stage->back, stage->asked);
  assert_int_equal(stage->world.engine->flights.count, 0);
  assert_false(stage->world.engine->directory_stale);
  assert_int_equal(engine_position(stage->world.engine), journal_last_seq(stage->world.journal));
  stage_close(stage);
}

/* Only so many are on their way: the next tick waits for the oldest. */
static void test_bound_of_commits(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  hold(stage);
  ask_some(stage, "many", commits_in_flight_max);
  assert_int_equal(stage->world.engine->flights.count, commits_in_flight_max);
  assert_int_equal(stage->back, 0);
  let_go(stage);
  ask_some(stage, "more", 1);
  assert_true(stage->back >= 1);
  assert_in_range(stage->world.engine->flights.count, 0, commits_in_flight_max);
  land(stage);
  stage_close(stage);
}

/* Nor only so many, but so large. */
static void test_bound_of_bytes(void **state) {
  (void)state;
  enum { chars = 200000, count = 25 };
  struct stage *stage = stage_open();
  char *payload = guard_malloc(chars + 2), key[16];
  memset(payload, 'x', chars + 2);
  payload[0] = payload[chars + 1] = '"';
  hold(stage);
  for (unsigned i = 0; i < count; i++) {
    (void)snprintf(key, sizeof key, "large-%u", i);
    struct command command = world_submit(&stage->world, key);
    command.as.submit.payload = bytes_of(payload, chars + 2);
    world_identify(&stage->world, &command, key);
    (void)ask(stage, &command);
  }
  assert_int_equal(tick(stage), STATUS_OK);
  assert_true(stage->world.engine->flights.bytes > flight_bytes_max);
  assert_int_equal(stage->back, 0);
  let_go(stage);
  ask_some(stage, "small", 1);
  assert_true(stage->back >= count);
  assert_true(stage->world.engine->flights.bytes <= flight_bytes_max);
  land(stage);
  assert_int_equal(stage->world.engine->flights.bytes, 0);
  for (unsigned i = 0; i < commits_in_flight_max; i++) /* what grew is given back */
    assert_true(stage->world.engine->flights.places[i].commit.records.capacity <= flight_kept_bytes_max);
  free(payload);
  stage_close(stage);
}

/* Puts a descriptor that cannot be written in the place of the log's: its writes fail from here on. */
static void break_disk(const struct stage *stage) {
  char link[64], path[4096], wanted[4096];
  (void)snprintf(wanted, sizeof wanted, "%s/log/data.mdb", stage->world.directory);
  for (int fd = 3; fd < 256; fd++) {
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) continue;
    path[size] = '\0';
    if (strcmp(path, wanted) != 0) continue;
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(other >= 0);
    assert_int_equal(dup2(other, fd), fd);
    assert_int_equal(close(other), 0);
  }
}

/* A commit fails on its way: nothing of it and nothing behind it leaves, not even what was only read; and what was answered
 * before is all that is there. */
static void test_failure_answers_nobody(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  struct fault fault = {0};
  struct command hello = world_hello_command(&stage->world, 1, 10);
  struct command read = {.kind = COMMAND_GET_QUEUE, .who = stage->world.who, .as.object_id = stage->world.queue_id};
  ask_some(stage, "kept", 3);
  land(stage);
  uint32_t kept = stage->back;
  uint64_t position = engine_position(stage->world.engine);
  (void)ask(stage, &hello);
  hold(stage);
  assert_int_equal(tick(stage), STATUS_OK); /* assigns what waits */
  ask_some(stage, "lost", 4);
  (void)ask(stage, &read);
  assert_int_equal(tick(stage), STATUS_OK);
  assert_int_equal(stage->back, kept);
  break_disk(stage);
  let_go(stage);
  assert_true(engine_land(stage->world.engine, true, &fault) != STATUS_OK);
  assert_non_null(strstr(fault.message, "write")); /* the commit, or the room ahead of it before */
  assert_true(tick(stage) != STATUS_OK);
  collect(stage);
  assert_int_equal(stage->back, kept);
  assert_int_equal(world_count(&stage->world, MAIL_ASSIGN, 1), 0);
  assert_int_equal(engine_position(stage->world.engine), position);
  world_restart(&stage->world);
  assert_int_equal(state_task_count(stage->world.engine->state), 3);
  stage_close(stage);
}

/* A server that ends while commits are on their way answers nobody, and frees what it would have said. */
static void test_end_with_commits_on_their_way(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  struct command hello = world_hello_command(&stage->world, 1, 10);
  (void)ask(stage, &hello);
  assert_int_equal(tick(stage), STATUS_OK);
  land(stage);
  uint32_t back = stage->back;
  hold(stage);
  ask_some(stage, "under-way", 3); /* with assignments */
  let_go(stage);
  world_restart(&stage->world);
  collect(stage);
  assert_int_equal(stage->back, back);
  assert_int_equal(state_task_count(stage->world.engine->state), 3); /* they were handed over, so they are there */
  stage_close(stage);
}

/* node.stopped is the last of all. */
static void test_finish_waits_for_all(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  struct fault fault = {0};
  hold(stage);
  ask_some(stage, "last", 3);
  assert_int_equal(stage->back, 0);
  let_go(stage);
  assert_int_equal(engine_finish(stage->world.engine, stage->world.now_us, "asked", &fault), STATUS_OK);
  collect(stage);
  assert_int_equal(stage->back, stage->asked);
  assert_int_equal(engine_position(stage->world.engine), journal_last_seq(stage->world.journal));
  enum event_type types[8];
  uint64_t last = journal_last_seq(stage->world.journal);
  assert_int_equal(world_types_after(&stage->world, last - 1, types, 8), 1);
  assert_int_equal(types[0], EVENT_node_stopped);
  stage_close(stage);
}

/* A tick with less company than is wanted waits for its commit by itself; with commits on their way every tick goes behind
 * them. */
static void test_lonely_ticks_write_at_once(void **state) {
  (void)state;
  struct stage *stage = stage_open();
  stage->world.company_min = 3;
  world_restart(&stage->world);
  ask_some(stage, "alone", 2);
  assert_int_equal(stage->back, 2);
  assert_int_equal(stage->world.engine->flights.count, 0);
  hold(stage);
  for (unsigned i = 0; i < 3; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "three-%u", i);
    struct command command = world_submit(&stage->world, key);
    (void)ask(stage, &command);
  }
  assert_int_equal(tick(stage), STATUS_OK);
  ask_some(stage, "behind", 1);
  assert_int_equal(stage->back, 2);
  assert_int_equal(stage->world.engine->flights.count, 2);
  let_go(stage);
  land(stage);
  stage_close(stage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers_wait_for_their_commit),
      cmocka_unit_test(test_a_quick_disk_is_waited_for),
      cmocka_unit_test(test_reads_wait_for_what_they_saw),
      cmocka_unit_test(test_pushes_wait),
      cmocka_unit_test(test_directory_waits),
      cmocka_unit_test(test_bound_of_commits),
      cmocka_unit_test(test_bound_of_bytes),
      cmocka_unit_test(test_failure_answers_nobody),
      cmocka_unit_test(test_end_with_commits_on_their_way),
      cmocka_unit_test(test_finish_waits_for_all),
      cmocka_unit_test(test_lonely_ticks_write_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
