/* The server, from its configuration to its last event. */
#include <argp.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "edge/channel.h"
#include "edge/http.h"
#include "engine/clock.h"
#include "orbitd/config.h"
#include "orbitd/follower.h"
#include "orbitd/replay.h"
#include "orbitd/service.h"
#include "orbitd/sockets.h"

const char *argp_program_version = "orbitd " ORBIT_VERSION;

enum { exit_misuse = 2, exit_cannot_run = 3 };

struct server {
  struct config config;
  struct edge edge;
  int http_fd, worker_fd;
  struct http *http;
  struct channel *channel;
  pthread_t engine_thread;
  struct follower *follower; /* NULL: no checkpoint is kept */
  struct cold *cold;         /* what has ended and left memory */
};

static void *run_engine(void *context) {
  struct server *server = context;
  struct fault fault = {0};
  (void)pthread_setname_np(pthread_self(), "engine");
  if (engine_run(server->edge.engine, &fault) != STATUS_OK) {
    /* Memory is ahead of the log: nothing that was decided since may be answered. */
    log_line(&server->edge.log, LOG_ERROR, "the log cannot be written; stopping at once, nothing more is acknowledged",
             "reason", fault.message, NULL);
    _exit(exit_cannot_run);
  }
  return NULL;
}

/* Tokens travel in every request: beyond loopback only behind TLS, unless the operator says so. */
static bool allow_beyond_loopback(const struct config *config) { return config->tls_cert[0] != 0 || config->allow_plain_text; }

/* Said before anything is opened, and by --check. */
static enum status judge_addresses(const struct config *config, struct fault *fault) {
  bool beyond = allow_beyond_loopback(config);
  enum status status = socket_judge("listen", config->listen, beyond, fault);
  return status == STATUS_OK ? socket_judge("worker-listen", config->worker_listen, beyond, fault) : status;
}

static enum status open_tls(struct server *server, struct fault *fault) {
  const struct config *config = &server->config;
  return config->tls_cert[0] == 0 ? STATUS_OK : tls_open(config->tls_cert, config->tls_key, &server->edge.tls, fault);
}

static void log_certificate(const struct server *server, const char *message) {
  char until[time_chars_max + 1];
  int64_t not_after_us = tls_not_after_us(server->edge.tls);
  until[time_format(time_with_text(not_after_us), until)] = '\0'; /* some are made to last until the year 9999 */
  bool over = not_after_us <= clock_wall_us();
  log_line(&server->edge.log, over ? LOG_WARNING : LOG_INFO, message, "certificate", server->config.tls_cert,
           over ? "ended_at" : "ends_at", until, NULL);
}

/* SIGHUP: the certificate is read again; what is connected stays connected. */
static void reload(struct server *server) {
  struct fault fault = {0};
  service_say_reloading();
  if (server->edge.tls == NULL) log_line(&server->edge.log, LOG_INFO, "there is no certificate to read again", NULL);
  else if (tls_reload(server->edge.tls, &fault) == STATUS_OK) log_certificate(server, "certificate read again");
  else
    log_line(&server->edge.log, LOG_ERROR, "the certificate could not be read again; the one before stays in use", "reason",
             fault.message, NULL);
  service_say_ready();
}

static enum status open_sockets(struct server *server, struct fault *fault) {
  const struct config *config = &server->config;
  bool beyond = allow_beyond_loopback(config);
  socket_activated(&server->http_fd, &server->worker_fd);
  enum status status = server->http_fd < 0 ? socket_listen("listen", config->listen, beyond, &server->http_fd, fault)
                                           : socket_judge_activated("listen", server->http_fd, beyond, fault);
  if (status != STATUS_OK) return status;
  status = server->worker_fd < 0 ? socket_listen("worker-listen", config->worker_listen, beyond, &server->worker_fd, fault)
                                 : socket_judge_activated("worker-listen", server->worker_fd, beyond, fault);
  if (status != STATUS_OK) return status;
  char address[160];
  socket_address(server->worker_fd, address, sizeof address);
  if (config->worker_url[0] != 0)
    (void)snprintf(server->edge.worker_url, sizeof server->edge.worker_url, "%.255s", config->worker_url);
  else
    (void)snprintf(server->edge.worker_url, sizeof server->edge.worker_url, "%s://%s/v1/worker",
                   server->edge.tls != NULL ? "wss" : "ws", address);
  return STATUS_OK;
}

static enum status judge_clock(const struct server *server, struct fault *fault) {
  int64_t wall_us = clock_wall_us(), last_us = journal_last_time_us(server->edge.journal), ahead = last_us - wall_us;
  if (!time_has_text(wall_us > last_us ? wall_us : last_us))
    return fault_set(fault, STATUS_FOREIGN, NULL, "the machine's clock stands outside of the years 2000 to 9998: set it");
  if (ahead <= clock_ahead_us_max || server->config.accept_future_log) return STATUS_OK;
  return fault_set(
      fault, STATUS_FOREIGN, NULL,
      "the log's last event lies %lld s ahead of the clock: set the clock, or say --accept-future-log to go on from there",
      (long long)(ahead / 1000000));
}

static unsigned http_threads(const struct config *config) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (config->http_threads != 0) return (unsigned)config->http_threads;
  return cores > 2 ? (unsigned)cores - 1 : 1;
}

/* The engine cannot do without a reader of its own; programs beside the server may have taken all there are. */
static enum status judge_readers(struct journal *journal, struct fault *fault) {
  struct journal_reader *reader;
  journal_reap_readers(journal);
  if (journal_reader_new(journal, &reader) != STATUS_OK)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL,
                     "all %d places for readers of the log are taken by other programs: end some of them (fuser -v "
                     "DATA/log/lock.mdb names them)",
                     log_readers_max);
  journal_reader_free(reader);
  return STATUS_OK;
}

static enum status start(struct server *server, struct fault *fault) {
  struct edge *edge = &server->edge;
  struct journal_options options = {.map_bytes = server->config.map_size};
  struct engine_options engine_options = {.version = ORBIT_VERSION,
                                          .hot_window_us = (int64_t)server->config.hot_window * 1000000,
                                          .retention_us = (int64_t)server->config.retention * 1000000,
                                          .memory_max = server->config.memory_max,
                                          .company_min = company_tickets_min,
                                          .slow_disk_us = slow_disk_us_min};
  struct state *state;
  enum status status = open_sockets(server, fault);
  if (status == STATUS_OK) status = journal_open(server->config.data, &options, &edge->journal, fault);
  if (status == STATUS_OK) status = judge_clock(server, fault);
  if (status != STATUS_OK) return status;
  edge->node_id = journal_node_id(edge->journal);
  if ((status = judge_readers(edge->journal, fault)) != STATUS_OK) return status;
  if ((status = http_start(edge, server->http_fd, http_threads(&server->config), &server->http, fault)) != STATUS_OK)
    return status;
  server->cold = cold_new();
  struct follower_options follower = {.data_directory = server->config.checkpoint ? server->config.data : NULL,
                                      .map_bytes = server->config.map_size,
                                      .cold = server->cold,
                                      .memory_max = server->config.memory_max};
  struct replay_options replay = {follower.data_directory, follower.map_bytes, follower.cold, follower.memory_max};
  if ((status = replay_log(edge, edge->journal, &replay, &state, &follower.checkpoint, fault)) != STATUS_OK) return status;
  randombytes_buf(&engine_options.id_seed, sizeof engine_options.id_seed);
  edge->engine = engine_new(edge->journal, state, &engine_options);
  if ((status = engine_start(edge->engine, engine_now_us(edge->engine), fault)) != STATUS_OK) return status;
  if (pthread_create(&server->engine_thread, NULL, run_engine, server) != 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "cannot start the engine's thread");
  atomic_store(&edge->phase, EDGE_READY); /* a worker that waits in the backlog must find it so */
  status = channel_start(edge, server->worker_fd, &server->channel, fault);
  if (status != STATUS_OK || follower.data_directory == NULL) return status;
  return follower_start(&edge->log, edge->journal, &follower, &server->follower, fault);
}

static void announce(const struct server *server) {
  char address[160];
  socket_address(server->http_fd, address, sizeof address);
  log_line(&server->edge.log, LOG_INFO, "ready", "version", ORBIT_VERSION, "data", server->config.data, "listen", address,
           "worker_url", server->edge.worker_url, "node_id", id_text(&server->edge.node_id).text, NULL);
  service_say_ready();
}

/* Refuse new work, answer what is committed, tell the workers, mark a clean stop. */
static enum status stop(struct server *server, const char *reason, struct fault *fault) {
  struct edge *edge = &server->edge;
  service_say_stopping();
  log_line(&edge->log, LOG_INFO, "stopping", "reason", reason, NULL);
  atomic_store(&edge->phase, EDGE_DRAINING);
  engine_drain(edge->engine);
  channel_goaway(server->channel);
  http_stop(server->http);
  channel_stop(server->channel);
  engine_stop(edge->engine);
  (void)pthread_join(server->engine_thread, NULL);
  enum status status = engine_finish(edge->engine, engine_now_us(edge->engine), reason, fault);
  follower_stop(server->follower);
  engine_free(edge->engine);
  cold_free(server->cold);
  journal_close(edge->journal, status == STATUS_OK);
  (void)close(server->http_fd);
  if (status == STATUS_OK) log_line(&edge->log, LOG_INFO, "stopped", NULL);
  return status;
}

/* What was read and is answered lies in memory, tokens among it: it is not written to disk when the process dies, unless the
 * operator wants to look. One byte, because 0 would still hand the image to a program that the system names for it. */
static void forbid_core_dumps(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max > 0 ? 1 : 0;
  (void)setrlimit(RLIMIT_CORE, &limit);
}

/* Every connection is a file descriptor: all that may be had are taken, the soft limit is for programs that use select(). */
static void raise_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int cannot_run(const struct server *server, const struct fault *fault) {
  if (server->edge.log.json) log_line(&server->edge.log, LOG_ERROR, "cannot run", "reason", fault->message, NULL);
  else (void)fprintf(stderr, "orbitd: %s\n", fault->message);
  return exit_cannot_run;
}

/* Waits for a signal to stop. Meanwhile programs that read the log may be killed, SIGHUP may ask for a reload, and the service
 * manager wants to hear of a sound engine. */
static int wait_for_stop(struct server *server, const sigset_t *signals) {
  struct watchdog watchdog;
  int64_t reap_us = clock_monotonic_us();
  watchdog_init(&watchdog, server->edge.engine);
  for (;;) {
    int64_t now_us = clock_monotonic_us(), wait_us = watchdog_look(&watchdog, now_us);
    if (now_us >= reap_us) {
      journal_reap_readers(server->edge.journal);
      reap_us = now_us + log_reap_interval_ms * us_per_ms;
    }
    if (wait_us > reap_us - now_us) wait_us = reap_us - now_us;
    const struct timespec wait = {.tv_sec = (time_t)(wait_us / 1000000), .tv_nsec = (long)(wait_us % 1000000 * 1000)};
    int number = sigtimedwait(signals, NULL, &wait);
    if (number == SIGHUP) reload(server);
    else if (number > 0) return number;
  }
}

/* Each thread's heap keeps some room at its end: without that, every large batch had the kernel take its pages and bring them
 * back. */
static void keep_heaps(void) {
  (void)mallopt(M_TRIM_THRESHOLD, heap_spare_bytes);
  (void)mallopt(M_MMAP_THRESHOLD, heap_mapped_bytes_min);
}

int main(int argc, char **argv) {
  static struct server server = {.http_fd = -1, .worker_fd = -1};
  struct fault fault = {0};
  sigset_t signals;
  int signal_number;
  if (sodium_init() < 0) return exit_cannot_run;
  enum status status = config_read(argc, argv, &server.config, &fault);
  if (status == STATUS_OK) status = judge_addresses(&server.config, &fault);
  if (status == STATUS_OK && !server.config.print_config) status = open_tls(&server, &fault);
  if (status != STATUS_OK) {
    (void)fprintf(stderr, "orbitd: %s\n", fault.message);
    return status == STATUS_NOT_FOUND ? exit_misuse : exit_cannot_run;
  }
  if (server.config.print_config) config_print(&server.config);
  if (server.config.print_config || server.config.check) return 0;
  keep_heaps();
  raise_file_limit();
  if (!server.config.core_dumps) forbid_core_dumps();
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of the write, not the end */
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGTERM);
  (void)sigaddset(&signals, SIGINT);
  (void)sigaddset(&signals, SIGHUP);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
  log_init(&server.edge.log, server.config.log_format);
  server.edge.metrics_open = server.config.metrics_open;
  server.edge.address_connections_max = (uint32_t)server.config.connections_per_address;
  server.edge.credential_workers_max = (uint32_t)server.config.workers_per_credential;
  server.edge.credential_requests_max = (uint32_t)server.config.requests_per_credential;
  (void)snprintf(server.edge.version, sizeof server.edge.version, "%s", ORBIT_VERSION);
  status = start(&server, &fault);
  if (status == STATUS_UNAVAILABLE && replay_stop_is_asked()) {
    service_say_stopping();
    log_line(&server.edge.log, LOG_INFO, "stopped before it was ready", "reason", fault.message, NULL);
    return 0;
  }
  if (status != STATUS_OK) return cannot_run(&server, &fault);
  if (server.edge.tls != NULL) log_certificate(&server, "certificate in use");
  announce(&server);
  signal_number = wait_for_stop(&server, &signals);
  return stop(&server, signal_number == SIGTERM ? "SIGTERM" : "SIGINT", &fault) == STATUS_OK ? 0 : cannot_run(&server, &fault);
}
