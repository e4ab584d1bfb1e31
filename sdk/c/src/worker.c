/* Owns workers: their making, their threads, and waiting for them. */
#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"

enum { capacity_default = 8, pool_threads_max = 1000 };

/* ---- Making ---- */

static int options_judge(const struct orbit_worker_options *options, struct orbit_error *error) {
  struct sdk_url url;
  const struct {
    bool good;
    const char *field, *problem;
  } rules[] = {
      {options->worker_url == NULL || (sdk_url_parse(options->worker_url, &url) && url.websocket), "worker_url",
       "the worker url must be ws://host:port or wss://host:port"},
      {options->worker_url != NULL || options->url != NULL, "url", "the url is missing"},
      {sdk_is_visible_ascii(options->token, 4096), "token", "the token is missing, or has characters that no token has"},
      {options->instance_id == NULL || sdk_is_id(options->instance_id), "instance_id",
       "instance_id must be an id: 32 lower-case hexadecimal digits"},
      {options->name == NULL || sdk_is_text(options->name, 1, name_chars_max), "name",
       "name must be 1–128 characters of UTF-8"},
      {options->queue_ids != NULL && options->queue_count >= 1 && options->queue_count <= queue_ids_max, "queue_ids",
       "there must be 1–256 queue ids"},
      {options->capacity <= worker_capacity_max, "capacity", "capacity must be 1–1,000"},
      {options->threads <= pool_threads_max, "threads", "threads must be 1–1,000"},
      {options->lease_ms == 0 || (options->lease_ms >= lease_ms_min && options->lease_ms <= lease_ms_max), "lease_ms",
       "lease_ms must be 5,000–300,000"},
  };
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    if (!rules[i].good) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, rules[i].field, "%s", rules[i].problem);
  }
  for (size_t i = 0; i < options->queue_count; i++) {
    if (!sdk_is_id(options->queue_ids[i])) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "queue_ids", "a queue id is no id");
  }
  return ORBIT_OK;
}

static bool texts_copy(struct orbit_worker *worker, const struct orbit_worker_options *options) {
  struct sdk_desk *desk = &worker->desk;
  char random_id[ORBIT_ID_SIZE];
  const char *instance_id = options->instance_id;
  if (instance_id == NULL) {
    if (orbit_random_id(random_id) != ORBIT_OK) return false;
    instance_id = random_id;
  }
  desk->instance_id = sdk_arena_string(&worker->texts, instance_id);
  desk->name = sdk_arena_string(&worker->texts, options->name);
  const char **queue_ids = sdk_arena_alloc(&worker->texts, options->queue_count * sizeof *queue_ids);
  for (size_t i = 0; queue_ids != NULL && i < options->queue_count; i++) {
    queue_ids[i] = sdk_arena_string(&worker->texts, options->queue_ids[i]);
  }
  desk->queue_ids = queue_ids;
  desk->queue_count = options->queue_count;
  worker->ca_file = sdk_arena_string(&worker->texts, sdk_ca_file(options->ca_file));
  size_t size = sizeof "Bearer " + strlen(options->token);
  worker->authorization = malloc(size);
  if (worker->authorization != NULL) (void)snprintf(worker->authorization, size, "Bearer %s", options->token);
  return worker->authorization != NULL && !worker->texts.failed;
}

/* The way to the worker channel: given, or through a client that asks /v1/info. */
static int address_prepare(struct orbit_worker *worker, const struct orbit_worker_options *options, struct orbit_error *error) {
  worker->url_is_given = worker->has_url = options->worker_url != NULL && sdk_url_parse(options->worker_url, &worker->url);
  if (worker->url_is_given) return ORBIT_OK;
  (void)sdk_url_parse(options->url, &worker->server); /* orbit_client_new judges it */
  struct orbit_client_options client_options = ORBIT_CLIENT_OPTIONS_INIT;
  client_options.url = options->url;
  client_options.ca_file = options->ca_file;
  client_options.connect_timeout_ms = 3000;
  client_options.timeout_ms = 5000;
  return orbit_client_new(&client_options, &worker->client, error);
}

static void conditions_init(struct orbit_worker *worker) {
  pthread_condattr_t monotonic;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_mutex_init(&worker->lock, NULL);
  (void)pthread_cond_init(&worker->work, &monotonic);
  (void)pthread_cond_init(&worker->changed, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
}

int orbit_worker_new(const struct orbit_worker_options *given, struct orbit_worker **ret_worker, struct orbit_error *error) {
  struct orbit_worker_options options;
  int status = sdk_options_copy(&options, sizeof options, given, error);
  if (status == ORBIT_OK) status = options_judge(&options, error);
  if (status != ORBIT_OK) return status;
  if (!sdk_global_init()) return sdk_fail(error, ORBIT_IO_ERROR, NULL, "libcurl or libsodium cannot be used");
  struct orbit_worker *worker = calloc(1, sizeof *worker);
  if (worker == NULL) return sdk_no_memory(error);
  conditions_init(worker);
  struct sdk_desk *desk = &worker->desk;
  desk->capacity = options.capacity != 0 ? options.capacity : capacity_default;
  desk->threads = options.threads != 0 ? options.threads : desk->capacity;
  desk->lease_ms = options.lease_ms;
  desk->log = options.log;
  desk->log_context = options.log_context;
  bool made = texts_copy(worker, &options) && sdk_desk_init(desk);
  status = made ? address_prepare(worker, &options, error) : sdk_no_memory(error);
  if (status == ORBIT_OK && (worker->line = sdk_line_new(worker)) == NULL) status = sdk_no_memory(error);
  if (status != ORBIT_OK) {
    orbit_worker_free(worker);
    return status;
  }
  *ret_worker = worker;
  return ORBIT_OK;
}

void orbit_worker_free(struct orbit_worker *worker) {
  if (worker == NULL) return;
  orbit_worker_stop(worker);
  sdk_line_free(worker->line);
  sdk_desk_clear(&worker->desk);
  orbit_client_free(worker->client);
  if (worker->authorization != NULL) sdk_wipe(worker->authorization, strlen(worker->authorization));
  free(worker->authorization);
  free(worker->pool);
  (void)pthread_cond_destroy(&worker->changed);
  (void)pthread_cond_destroy(&worker->work);
  (void)pthread_mutex_destroy(&worker->lock);
  sdk_arena_clear(&worker->texts);
  free(worker);
}

int orbit_worker_handle(struct orbit_worker *worker, const char *handler, const char *handler_version, orbit_handler *fn,
                        void *context, struct orbit_error *error) {
  if (worker == NULL || fn == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "there is no worker or no function");
  if (!sdk_is_word(handler) || !sdk_is_word(handler_version)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "handler", "handler and version must be 1–128 of [A-Za-z0-9._:/-]");
  }
  struct sdk_desk *desk = &worker->desk;
  if (worker->started) return sdk_fail(error, ORBIT_WRONG_STATE, NULL, "the worker has been started");
  if (desk->handler_count == handlers_max)
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "handler", "256 handlers are offered");
  for (uint32_t i = 0; i < desk->handler_count; i++) {
    if (strcmp(desk->handlers[i].handler, handler) == 0 && strcmp(desk->handlers[i].version, handler_version) == 0) {
      return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "handler", "this handler and version is offered already");
    }
  }
  struct sdk_handler entry = {sdk_arena_string(&worker->texts, handler), sdk_arena_string(&worker->texts, handler_version), fn,
                              context};
  if (worker->texts.failed) return sdk_no_memory(error);
  desk->handlers[desk->handler_count++] = entry;
  return ORBIT_OK;
}

/* ---- Threads ---- */

static void *line_main(void *context) {
  struct orbit_worker *worker = context;
  sdk_line_run(worker->line);
  (void)pthread_mutex_lock(&worker->lock);
  worker->line_ended = true;
  (void)pthread_cond_broadcast(&worker->changed);
  (void)pthread_mutex_unlock(&worker->lock);
  return NULL;
}

static void *pool_main(void *context) {
  struct orbit_worker *worker = context;
  (void)pthread_mutex_lock(&worker->lock);
  for (;;) {
    struct sdk_held *held = NULL;
    while (!worker->stopping && (held = sdk_desk_take(&worker->desk)) == NULL) {
      (void)pthread_cond_wait(&worker->work, &worker->lock);
    }
    if (held == NULL) break;
    (void)pthread_mutex_unlock(&worker->lock);
    enum orbit_outcome outcome = held->handler->function(held->handler->context, &held->assignment, &held->report);
    (void)pthread_mutex_lock(&worker->lock);
    sdk_desk_return(&worker->desk, held, outcome, sdk_monotonic_ms());
    if (worker->line_woken) continue;
    worker->line_woken = true;
    (void)pthread_mutex_unlock(&worker->lock); /* who is woken wants the lock */
    sdk_line_wake(worker->line);
    (void)pthread_mutex_lock(&worker->lock);
  }
  (void)pthread_mutex_unlock(&worker->lock);
  return NULL;
}

/* With the lock held. On failure the threads that were made end by `stopping`. Signals stay with the program's own threads. */
static int threads_start(struct orbit_worker *worker, struct orbit_error *error) {
  worker->pool = calloc(worker->desk.threads, sizeof *worker->pool);
  if (worker->pool == NULL) return sdk_no_memory(error);
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&worker->line_thread, NULL, line_main, worker);
  if (failed == 0) worker->started = true;
  while (failed == 0 && worker->pool_count < worker->desk.threads) {
    failed = pthread_create(&worker->pool[worker->pool_count], NULL, pool_main, worker);
    if (failed == 0) worker->pool_count++;
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed == 0) return ORBIT_OK;
  return sdk_fail(error, ORBIT_IO_ERROR, NULL, "a thread could not be started: %s", strerror(failed));
}

int orbit_worker_start(struct orbit_worker *worker, struct orbit_error *error) {
  if (worker == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "there is no worker");
  (void)pthread_mutex_lock(&worker->lock);
  int status;
  if (worker->started || worker->stopping) {
    status = sdk_fail(error, ORBIT_WRONG_STATE, NULL, "the worker has been started before");
  } else if (worker->desk.handler_count == 0) {
    status = sdk_fail(error, ORBIT_WRONG_STATE, NULL, "no handler has been offered");
  } else {
    status = threads_start(worker, error);
  }
  (void)pthread_mutex_unlock(&worker->lock);
  if (status == ORBIT_IO_ERROR || status == ORBIT_NO_MEMORY) orbit_worker_stop(worker);
  return status;
}

void orbit_worker_stop(struct orbit_worker *worker) {
  if (worker == NULL) return;
  (void)pthread_mutex_lock(&worker->lock);
  bool first = !worker->stopping;
  worker->stopping = true;
  sdk_desk_abandon(&worker->desk);
  (void)pthread_cond_broadcast(&worker->work);
  (void)pthread_cond_broadcast(&worker->changed);
  bool join = first && worker->started;
  (void)pthread_mutex_unlock(&worker->lock);
  if (!join) return;
  sdk_line_wake(worker->line);
  for (uint32_t i = 0; i < worker->pool_count; i++) (void)pthread_join(worker->pool[i], NULL);
  (void)pthread_join(worker->line_thread, NULL);
  (void)pthread_mutex_lock(&worker->lock);
  (void)pthread_cond_broadcast(&worker->changed);
  (void)pthread_mutex_unlock(&worker->lock);
}

/* ---- Waiting ---- */

static struct timespec deadline_after(uint64_t timeout_ms) {
  struct timespec time;
  if (timeout_ms > task_timeout_ms_max) timeout_ms = task_timeout_ms_max;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += (time_t)(timeout_ms / 1000);
  time.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_sec++;
    time.tv_nsec -= 1000000000;
  }
  return time;
}

static int stopped(const struct orbit_worker *worker, struct orbit_error *error) {
  if (!worker->desk.failed) return sdk_fail(error, ORBIT_STOPPED, NULL, "the worker has been stopped");
  if (error != NULL) *error = worker->desk.failure;
  return ORBIT_STOPPED;
}

static bool is_ready(const struct orbit_worker *worker) { return worker->desk.welcomed || worker->drain_finished; }
static bool is_drained(const struct orbit_worker *worker) { return worker->drain_finished; }

/* Waits, with the lock held, until done is true, the worker has ended, or the time is over. */
static int wait_until(struct orbit_worker *worker, bool (*done)(const struct orbit_worker *), uint64_t timeout_ms,
                      const char *what, struct orbit_error *error) {
  struct timespec deadline = deadline_after(timeout_ms);
  while (!done(worker)) {
    if (worker->stopping || worker->line_ended) return stopped(worker, error);
    if (pthread_cond_timedwait(&worker->changed, &worker->lock, &deadline) == 0) continue;
    if (done(worker)) break;
    if (!worker->desk.welcomed && worker->last_error.status != ORBIT_OK) {
      return sdk_fail(error, ORBIT_TIMEOUT, NULL, "%s within %llu ms: %s", what, (unsigned long long)timeout_ms,
                      worker->last_error.message);
    }
    return sdk_fail(error, ORBIT_TIMEOUT, NULL, "%s within %llu ms", what, (unsigned long long)timeout_ms);
  }
  return ORBIT_OK;
}

int orbit_worker_wait_ready(struct orbit_worker *worker, uint64_t timeout_ms, struct orbit_error *error) {
  if (worker == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "there is no worker");
  (void)pthread_mutex_lock(&worker->lock);
  int status = worker->started ? wait_until(worker, is_ready, timeout_ms, "Orbit has not welcomed the worker", error)
                               : sdk_fail(error, ORBIT_WRONG_STATE, NULL, "the worker has not been started");
  (void)pthread_mutex_unlock(&worker->lock);
  return status;
}

int orbit_worker_drain(struct orbit_worker *worker, uint64_t timeout_ms, struct orbit_error *error) {
  if (worker == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "there is no worker");
  (void)pthread_mutex_lock(&worker->lock);
  int status;
  if (!worker->started) {
    status = sdk_fail(error, ORBIT_WRONG_STATE, NULL, "the worker has not been started");
  } else {
    sdk_desk_drain(&worker->desk);
    sdk_line_wake(worker->line);
    status = wait_until(worker, is_drained, timeout_ms, "the worker has not drained", error);
  }
  (void)pthread_mutex_unlock(&worker->lock);
  return status;
}

int orbit_worker_run(struct orbit_worker *worker, struct orbit_error *error) {
  if (worker == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "there is no worker");
  (void)pthread_mutex_lock(&worker->lock);
  bool start = !worker->started && !worker->stopping;
  (void)pthread_mutex_unlock(&worker->lock);
  int status = start ? orbit_worker_start(worker, error) : ORBIT_OK;
  if (status != ORBIT_OK) return status;
  (void)pthread_mutex_lock(&worker->lock);
  while (!worker->line_ended && worker->started) (void)pthread_cond_wait(&worker->changed, &worker->lock);
  if (worker->desk.failed) status = stopped(worker, error);
  (void)pthread_mutex_unlock(&worker->lock);
  return status;
}

/* ---- Looking ---- */

void orbit_worker_stats(struct orbit_worker *worker, struct orbit_worker_stats *ret_stats) {
  size_t size = ret_stats->size < sizeof *ret_stats ? ret_stats->size : sizeof *ret_stats;
  (void)pthread_mutex_lock(&worker->lock);
  struct orbit_worker_stats stats = worker->desk.stats;
  stats.size = ret_stats->size;
  stats.held = worker->desk.held_count;
  stats.connected = worker->desk.welcomed;
  stats.drained = worker->drain_finished;
  (void)pthread_mutex_unlock(&worker->lock);
  memcpy(ret_stats, &stats, size);
}

const char *orbit_worker_instance_id(const struct orbit_worker *worker) { return worker->desk.instance_id; }
