/* Owns assignment: ready tasks x free capacity -> lease commands, in the same tick and commit as what made them ready. */
#include "base/guard.h"
#include "engine/internal.h"

/* ---- buckets that may give a task now, best task first ---- */

static uint32_t *hot_position(void *context, uint32_t bucket) {
  return &((struct engine *)context)->services[bucket].hot_position;
}
static int hot_tie(void *context, uint32_t a, uint32_t b) {
  struct engine *engine = context;
  const struct task *first = state_task_at(engine->state, engine->services[a].hot_task);
  return id_compare(&first->id, &state_task_at(engine->state, engine->services[b].hot_task)->id);
}
static struct heap_owner hot_owner(struct engine *engine) { return (struct heap_owner){hot_position, hot_tie, engine}; }

static void hot_put(struct engine *engine, uint32_t bucket) {
  struct heap_owner owner = hot_owner(engine);
  uint32_t first = state_bucket_first(engine->state, bucket, &engine->asides_left);
  if (first == 0) {
    heap_remove(&engine->hot, &owner, bucket);
    return;
  }
  engine->services[bucket].hot_task = first;
  heap_put(&engine->hot, &owner, bucket, state_ready_key(engine->state, first));
}

static void collect_hot(struct engine *engine) {
  for (uint32_t number = 1; number <= engine->groups.used; number++) {
    const struct worker_group *group = pool_at(&engine->groups, number);
    if (group->workers == 0 || group->free.count == 0) continue;
    for (uint32_t i = 0; i < group->bucket_count; i++)
      if (state_bucket_at(engine->state, group->buckets[i])->ready != 0) hot_put(engine, group->buckets[i]);
  }
}

/* True when the queue may lease one more task now. */
static bool queue_is_open(struct engine *engine, const struct queue *queue) {
  if (queue->paused) return false;
  if (queue->max_running != 0 && queue->counts[TASK_LEASED] + queue->counts[TASK_RUNNING] >= queue->max_running) return false;
  int64_t next = rate_next_us(queue);
  if (next <= engine->now_us) return true;
  if (next < engine->dispatch_again_us) engine->dispatch_again_us = next;
  return false;
}

/* ---- one lease ---- */

static void lease(struct engine *engine, uint32_t task_number, struct worker *worker) {
  struct task *task = state_task_at(engine->state, task_number);
  struct fault fault;
  struct decide_env env = engine_env(engine);
  struct lease_request request = {
      .instance_id = worker->instance_id,
      .instance_name = worker->name,
      .application_id = worker->who.application_id,
      .lease_ms = worker->lease_ms != 0 ? worker->lease_ms : (uint32_t)state_queue_of(engine->state, task)->lease_ms,
  };
  if (decide_lease(task, &request, &env, &engine->list, &fault) != STATUS_OK) {
    attempt_expire(engine, task_number); /* ready, but a deadline has come with this very tick */
    must(task->state != TASK_WAITING);
    return;
  }
  engine_append(engine);
  engine->counters.leases++;
  worker_push_assign(engine, worker, task_number);
  worker_settle(engine, worker);
}

/* Sockets that lagged are looked at once a tick. */
static void revive_slow(struct engine *engine) {
  size_t at = 0;
  uint64_t session, number;
  if (engine->slow_count == 0) return;
  while (index_each(&engine->sessions, &at, &session, &number)) {
    struct worker *worker = pool_at(&engine->workers, (uint32_t)number);
    if (!worker->slow || atomic_load(&worker->gauge->unsent_bytes) >= worker_unsent_bytes_pause) continue;
    worker->slow = false;
    engine->slow_count--;
    worker_settle(engine, worker);
  }
  if (engine->slow_count != 0) engine->dispatch_again_us = engine->now_us + dispatch_slow_again_us;
}

/* The commit takes no further claim: the next one follows at once. Claims have room of their own behind what tickets may fill,
 * so that a flood of large submissions does not keep workers waiting. */
static bool commit_is_full(const struct engine *engine, uint32_t leases) {
  return leases >= dispatch_leases_max || engine->commit.records.size >= commit_bytes_max / 4 * 3;
}

static struct worker *choose(struct engine *engine, uint32_t bucket) {
  if (!queue_is_open(engine, state_bucket_queue(engine->state, state_bucket_at(engine->state, bucket)))) return NULL;
  return worker_choose(engine, bucket);
}

void dispatch(struct engine *engine) {
  struct heap_owner owner = hot_owner(engine);
  revive_slow(engine);
  if (engine->disk_full || atomic_load(&engine->draining) || state_ready_count(engine->state) == 0) return;
  engine->asides_left = dispatch_asides_max;
  collect_hot(engine);
  for (uint32_t leases = 0; engine->hot.count != 0;) {
    uint32_t bucket = heap_first(&engine->hot).number;
    uint32_t task_number = state_bucket_first(engine->state, bucket, &engine->asides_left);
    if (task_number != engine->services[bucket].hot_task) { /* a lease elsewhere took its first task's key */
      hot_put(engine, bucket);
      continue;
    }
    struct worker *worker = choose(engine, bucket);
    bool full = commit_is_full(engine, leases);
    if (worker != NULL && full) engine->dispatch_again_us = engine->now_us;
    if (worker == NULL || full) {
      heap_remove(&engine->hot, &owner, bucket);
      continue;
    }
    lease(engine, task_number, worker);
    leases++;
    hot_put(engine, bucket);
  }
  if (engine->asides_left == 0) engine->dispatch_again_us = engine->now_us;
}
