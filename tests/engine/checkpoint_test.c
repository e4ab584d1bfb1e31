/* The checkpoint beside a whole Orbit: whatever happens in it, and wherever the follower stood when it ended, loading and
 * folding the rest gives what the whole log gives. */
#include "engine/checkpoint_stage.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void any_life_loads_as_it_is_folded(void **context) {
  struct stage *stage = *context;
  stage->random = test_seed();
  walk(stage, 1000);
  follow_all(stage);
  stop_following(stage);
  assert_int_equal(expect_equal(stage), journal_last_seq(stage->world.journal));
  assert_true(state_task_count(stage->world.engine->state) > 100);
}

/* The same rows whether the follower goes commit by commit or takes all at once. */
static void the_size_of_a_batch_changes_nothing(void **context) {
  struct stage *stage = *context;
  stage->random = 5;
  begin_following(stage);
  walk(stage, 300);
  if (stage->checkpoint == NULL) begin_following(stage);
  while (follow_some(stage, 1) != 0) continue;
  stop_following(stage);
  (void)expect_equal(stage);
  assert_int_equal(checkpoint_remove(stage->views), STATUS_OK);
  begin_following(stage);
  assert_int_equal(follow_some(stage, UINT64_MAX), journal_last_seq(stage->world.journal));
  stop_following(stage);
  (void)expect_equal(stage);
}

static void a_batch_ends_with_a_commit_of_the_log(void **context) {
  struct stage *stage = *context;
  begin_following(stage); /* the world's first commit has several events */
  uint64_t first = follow_some(stage, 1);
  assert_true(first > 1);
  stop_following(stage);
  assert_int_equal(expect_equal(stage), first);
}

/* The lease of a running attempt is given back by each node.started; its row is not touched by that. */
static void leases_given_back_are_given_back_in_rows(void **context) {
  struct stage *stage = *context;
  struct world *world = &stage->world;
  (void)world_submitted(world, "a");
  struct push push = *world_assigned(world, 1);
  world_start(world, &push);
  follow_all(stage);
  for (unsigned restart = 0; restart < 3; restart++) {
    stop_following(stage);
    world->now_us += 4000000;
    world_restart(world);
    if (restart == 1) follow_all(stage);
    int64_t until = world_attempt(world, &push.task_id)->lease_until;
    stop_following(stage);
    (void)expect_equal(stage);
    struct state *state;
    struct checkpoint_position position;
    struct fault fault;
    assert_int_equal(load(stage, &state, &position, &fault), STATUS_OK);
    if (restart == 1) assert_true(state_attempt_at(state, state_task_number(state, &push.task_id))->lease_until == until);
    state_free(state);
  }
}

/* ---- an end in the middle ---- */

static void a_batch_that_was_not_committed_is_not_there(void **context) {
  struct stage *stage = *context;
  stage->random = 9;
  walk(stage, 100);
  follow_all(stage);
  stop_following(stage);
  uint64_t before = expect_equal(stage);
  walk(stage, 60);
  stop_following(stage);
  assert_true(expect_equal(stage) >= before);
}

static void kill_a_follower(struct stage *stage, useconds_t after_us) {
  int ready[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    struct journal_options options = {.read_only = true};
    struct journal *journal;
    struct checkpoint *checkpoint;
    struct fault fault;
    uint64_t events;
    char *arguments = stage->world.directory;
    if (journal_open(arguments, &options, &journal, &fault) != STATUS_OK) _exit(1);
    if (checkpoint_open(stage->views, UINT64_C(1) << 30, journal, &checkpoint, &fault) != STATUS_OK) _exit(2);
    if (write(ready[1], &byte, 1) != 1) _exit(3);
    while (checkpoint_follow(checkpoint, 7, &events, &fault) == STATUS_OK && events != 0) continue;
    _exit(0);
  }
  assert_true(child > 0);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  (void)usleep(after_us);
  (void)kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  (void)close(ready[0]), (void)close(ready[1]);
}

/* Killed wherever it was: what stands there is a commit's end, and the next follower goes on from it. */
static void a_killed_follower_leaves_a_sound_checkpoint(void **context) {
  struct stage *stage = *context;
  uint64_t seen = 0;
  stage->random = test_seed();
  walk(stage, 400);
  for (unsigned round = 0; round < 12; round++) {
    stop_following(stage);
    kill_a_follower(stage, (useconds_t)roll(stage, 20000));
    struct state *state;
    struct checkpoint_position position;
    struct fault fault;
    enum status status = load(stage, &state, &position, &fault);
    if (status == STATUS_NOT_FOUND) continue; /* killed before its first commit */
    assert_int_equal(status, STATUS_OK);
    state_free(state);
    assert_true(position.seq >= seen);
    seen = position.seq;
    (void)expect_equal(stage);
    walk(stage, 20);
  }
  follow_all(stage);
  stop_following(stage);
  (void)expect_equal(stage);
}

int main(void) {
#define ROW(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
  const struct CMUnitTest tests[] = {
      ROW(any_life_loads_as_it_is_folded),
      ROW(the_size_of_a_batch_changes_nothing),
      ROW(a_batch_ends_with_a_commit_of_the_log),
      ROW(leases_given_back_are_given_back_in_rows),
      ROW(a_batch_that_was_not_committed_is_not_there),
      ROW(a_killed_follower_leaves_a_sound_checkpoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
