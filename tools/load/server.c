/* Owns a server process of one's own, and its directory. */
#include "load/server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "load/scan.h"

enum { ready_s_max = 120, stop_ms_max = 60000, log_line_max = 8192, path_max = 4096 };

/* ---- programs beside this one ---- */

static enum status program_path(const char *name, char out[path_max], struct fault *fault) {
  char self[path_max - 64];
  ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size < 0) return fault_set(fault, STATUS_IO_ERROR, NULL, "/proc/self/exe cannot be read: %s", strerror(errno));
  self[size] = '\0';
  char *slash = strrchr(self, '/');
  must(slash != NULL);
  *slash = '\0';
  (void)snprintf(out, path_max, "%s/%s", self, name);
  if (access(out, X_OK) != 0) return fault_set(fault, STATUS_IO_ERROR, NULL, "%.250s is not there: build it first", out);
  return STATUS_OK;
}

/* The child's side of a start. */
_Noreturn static void become(const char *path, char *const *arguments, char *const *environment, int out_fd, pid_t parent) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127); /* it was gone before the line above */
  (void)dup2(out_fd, STDOUT_FILENO);   /* what this program prints is data */
  (void)dup2(out_fd, STDERR_FILENO);
  (void)execve(path, arguments, environment != NULL ? environment : environ);
  _exit(127);
}

/* Runs a program to its end; what it says goes to a file. */
static enum status run(char *const *arguments, const char *log, struct fault *fault) {
  char path[path_max];
  int result = 0;
  enum status status = program_path(arguments[0], path, fault);
  if (status != STATUS_OK) return status;
  cleanup(guard_close) int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return fault_set(fault, STATUS_IO_ERROR, NULL, "%.200s cannot be written: %s", log, strerror(errno));
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(path, arguments, NULL, fd, parent);
  if (pid < 0 || waitpid(pid, &result, 0) != pid || !WIFEXITED(result) || WEXITSTATUS(result) != 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "%s failed: see %.200s", arguments[0], log);
  return STATUS_OK;
}

/* ---- the directory ---- */

static bool on_a_disk(const char *path) {
  struct statfs facts;
  return statfs(path, &facts) == 0 && facts.f_type != TMPFS_MAGIC && facts.f_type != RAMFS_MAGIC;
}

static enum status make_directory(struct server *server, struct fault *fault) {
  const char *base = getenv("TMPDIR");
  if (base == NULL || base[0] == '\0' || !on_a_disk(base)) base = "/var/tmp";
  if (!on_a_disk(base))
    return fault_set(fault, STATUS_IO_ERROR, NULL, "%.200s is not on a disk: set TMPDIR to a directory that is", base);
  int size = snprintf(server->directory, sizeof server->directory, "%s/orbit-load-XXXXXX", base);
  if (size < 0 || (size_t)size >= sizeof server->directory || mkdtemp(server->directory) == NULL) {
    server->directory[0] = '\0';
    return fault_set(fault, STATUS_IO_ERROR, NULL, "no directory can be made below %.200s: %s", base, strerror(errno));
  }
  (void)snprintf(server->data, sizeof server->data, "%s/data", server->directory);
  (void)snprintf(server->credentials, sizeof server->credentials, "%s/credentials.json", server->directory);
  return STATUS_OK;
}

static void server_log_path(const struct server *server, char out[server_path_max + 16]) {
  (void)snprintf(out, server_path_max + 16, "%s/server.log", server->directory);
}

enum status server_make(struct server *ret_server, struct fault *fault) {
  *ret_server =
      (struct server){.pid_fd = -1, .log_fd = -1, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  char log[server_path_max + 16];
  char *init[] = {
      "orbitctl", "init", "--data", ret_server->data, "--dev", "--recovery-access", "--credentials", ret_server->credentials,
      NULL};
  if (port_hold(&ret_server->port) != 0 || port_hold(&ret_server->worker_port) != 0)
    return fault_set(fault, STATUS_IO_ERROR, NULL, "no port on 127.0.0.1: %s", strerror(errno));
  enum status status = make_directory(ret_server, fault);
  if (status == STATUS_OK) server_log_path(ret_server, log);
  return status == STATUS_OK ? run(init, log, fault) : status;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place) {
  (void)facts, (void)kind, (void)place;
  return remove(path);
}

void server_clear(struct server *server, bool keep) {
  server_kill(server);
  port_release(&server->port);
  port_release(&server->worker_port);
  if (server->directory[0] != '\0' && !keep) (void)nftw(server->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  explicit_bzero(server->access.token, sizeof server->access.token);
}

/* ---- its log ---- */

static void copy_text(struct bytes text, char *out, size_t size) {
  if (text.size < size) (void)snprintf(out, size, "%.*s", (int)text.size, (const char *)text.data);
}

static void take_line(struct server *server, struct bytes line) {
  struct bytes message = scan_text(line, "message");
  char number[32] = "";
  if (bytes_equal_text(scan_text(line, "level"), "error")) copy_text(message, server->last_error, sizeof server->last_error);
  if (bytes_equal_text(message, "log replayed")) {
    copy_text(scan_text(line, "events"), number, sizeof number);
    server->replay_events = strtoull(number, NULL, 10);
    copy_text(scan_text(line, "seconds"), number, sizeof number);
    server->replay_seconds = strtod(number, NULL);
  } else if (bytes_equal_text(message, "ready")) {
    copy_text(scan_text(line, "listen"), server->listen, sizeof server->listen);
    copy_text(scan_text(line, "worker_url"), server->worker_url, sizeof server->worker_url);
    server->ready_ns = loop_now_ns();
    server->ready = true;
  }
}

/* Takes whole lines out of text; returns how much is left of it, moved to its front. */
static size_t take_lines(struct server *server, char *text, size_t size) {
  char *at = text, *end = text + size, *newline;
  (void)pthread_mutex_lock(&server->mutex);
  while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
    take_line(server, bytes_of(at, (size_t)(newline - at)));
    at = newline + 1;
  }
  (void)pthread_cond_broadcast(&server->changed);
  (void)pthread_mutex_unlock(&server->mutex);
  size_t left = (size_t)(end - at);
  if (left == log_line_max) left = 0; /* longer than any line that is looked for */
  memmove(text, at, left);
  return left;
}

static void *read_log(void *context) {
  struct server *server = context;
  char path[server_path_max + 16], text[log_line_max];
  size_t size = 0;
  server_log_path(server, path);
  cleanup(guard_close) int copy = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  for (;;) {
    ssize_t got = read(server->log_fd, text + size, sizeof text - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    ssize_t written = copy >= 0 ? write(copy, text + size, (size_t)got) : 0;
    (void)written; /* the copy is for people, after something went wrong */
    size = take_lines(server, text, size + (size_t)got);
  }
  (void)pthread_mutex_lock(&server->mutex);
  server->ended = true;
  (void)pthread_cond_broadcast(&server->changed);
  (void)pthread_mutex_unlock(&server->mutex);
  return NULL;
}

/* ---- start ---- */

static enum status spawn(struct server *server, char *const *arguments, struct fault *fault) {
  char path[path_max];
  int ends[2];
  enum status status = program_path(arguments[0], path, fault);
  if (status != STATUS_OK) return status;
  if (pipe2(ends, O_CLOEXEC) != 0) return fault_set(fault, STATUS_IO_ERROR, NULL, "no pipe: %s", strerror(errno));
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(path, arguments, server->environment, ends[1], parent);
  (void)close(ends[1]);
  if (pid < 0) {
    (void)close(ends[0]);
    return fault_set(fault, STATUS_IO_ERROR, NULL, "orbitd cannot be started: %s", strerror(errno));
  }
  server->pid = pid;
  server->pid_fd = pidfd_open(pid, 0);
  must(server->pid_fd >= 0);
  server->log_fd = ends[0];
  server->ready = server->ended = false;
  server->last_error[0] = '\0';
  must(pthread_create(&server->log_thread, NULL, read_log, server) == 0);
  return STATUS_OK;
}

enum status server_spawn(struct server *server, struct fault *fault) {
  must(server->pid == 0);
  char *arguments[] = {
      "orbitd",       "--data", server->data, "--listen", server->port.address, "--worker-listen", server->worker_port.address,
      "--log-format", "json",   NULL};
  return spawn(server, arguments, fault);
}

enum status server_wait_ready(struct server *server, struct fault *fault) {
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ready_s_max;
  int waited = 0;
  (void)pthread_mutex_lock(&server->mutex);
  while (!server->ready && !server->ended && waited == 0)
    waited = pthread_cond_timedwait(&server->changed, &server->mutex, &until);
  bool ready = server->ready, ended = server->ended;
  (void)pthread_mutex_unlock(&server->mutex);
  if (!ready)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "orbitd %s: see %.200s/server.log", ended ? "ended" : "is not ready",
                     server->directory);
  if (server->access.http.size != 0) return STATUS_OK;
  char url[sizeof server->listen + 8];
  (void)snprintf(url, sizeof url, "http://%s", server->listen);
  return server_access_read(server->credentials, url, &server->access, fault);
}

/* ---- end ---- */

static int reap(struct server *server) {
  int result = 0;
  must(waitpid(server->pid, &result, 0) == server->pid);
  (void)pthread_join(server->log_thread, NULL);
  guard_close(&server->log_fd);
  guard_close(&server->pid_fd);
  server->log_fd = server->pid_fd = -1;
  server->pid = 0;
  return result;
}

bool server_has_ended(const struct server *server) {
  struct pollfd ended = {.fd = server->pid_fd, .events = POLLIN};
  return server->pid == 0 || poll(&ended, 1, 0) == 1;
}

enum status server_wait_end(struct server *server, unsigned ms, int *ret_wait, struct fault *fault) {
  struct pollfd ended = {.fd = server->pid_fd, .events = POLLIN};
  must(server->pid != 0);
  if (poll(&ended, 1, (int)ms) != 1) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "orbitd runs on after %u ms", ms);
  *ret_wait = reap(server);
  return STATUS_OK;
}

void server_kill(struct server *server) {
  if (server->pid == 0) return;
  (void)kill(server->pid, SIGKILL);
  (void)reap(server);
}

enum status server_stop(struct server *server, struct fault *fault) {
  struct pollfd ended = {.fd = server->pid_fd, .events = POLLIN};
  must(server->pid != 0);
  (void)kill(server->pid, SIGTERM);
  bool in_time = poll(&ended, 1, stop_ms_max) == 1;
  if (!in_time) (void)kill(server->pid, SIGKILL);
  int result = reap(server);
  if (in_time && WIFEXITED(result) && WEXITSTATUS(result) == 0) return STATUS_OK;
  if (!in_time)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "orbitd did not stop within %d s of SIGTERM", stop_ms_max / 1000);
  return fault_set(fault, STATUS_UNAVAILABLE, NULL, "orbitd ended with %s %d: see %.200s/server.log",
                   WIFSIGNALED(result) ? "signal" : "exit code", WIFSIGNALED(result) ? WTERMSIG(result) : WEXITSTATUS(result),
                   server->directory);
}
