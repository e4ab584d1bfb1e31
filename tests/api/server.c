/* Owns the servers and programs that tests start. */
#include "api/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"

enum { arguments_max = 64, environment_max = 512, nap_ns = 2000000, exec_failed = 127 };

int64_t api_now_ms(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void api_nap(void) {
  const struct timespec nap = {.tv_nsec = nap_ns};
  (void)nanosleep(&nap, NULL);
}

/* ---- Programs ---- */

const char *api_program(const char *name) {
  static char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", ORBIT_BIN_DIR, name);
  if (access(path, X_OK) == 0) return path;
  fail_msg("%s has not been built", path);
  return NULL;
}

extern char **environ;

static bool is_passed_on(const char *entry) {
  return strncmp(entry, "ORBIT_", 6) != 0 && strncmp(entry, "XDG_", 4) != 0 && strncmp(entry, "NO_COLOR=", 9) != 0 &&
         strncmp(entry, "NOTIFY_SOCKET=", 14) != 0 && strncmp(entry, "LISTEN_", 7) != 0;
}

/* Whether a variable of the test's own is given anew. */
static bool is_replaced(const char *entry, const char *const *additions) {
  size_t name = strcspn(entry, "=") + 1;
  for (; additions != NULL && *additions != NULL; additions++)
    if (strncmp(entry, *additions, name) == 0) return true;
  return false;
}

static void make_environment(const struct api_run_options *options, const char *entries[environment_max]) {
  size_t count = 0;
  for (char **entry = environ; *entry != NULL && count < environment_max / 2; entry++)
    if (is_passed_on(*entry) && !is_replaced(*entry, options->environment)) entries[count++] = *entry;
  for (const char *const *entry = options->environment; entry != NULL && *entry != NULL; entry++) {
    assert_true(count < environment_max - 1);
    entries[count++] = *entry;
  }
  entries[count] = NULL;
}

/* In the child, between fork and exec: no memory is asked for. */
_Noreturn static void become(const char *const *arguments, const char *const *environment, const int fds[3], uid_t uid,
                             pid_t parent) {
  sigset_t none;
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
  for (int i = 0; i < 3; i++)
    if (dup2(fds[i], i) < 0) _exit(exec_failed);
  if (uid != 0 && (setgroups(0, NULL) != 0 || setgid((gid_t)uid) != 0 || setuid(uid) != 0)) _exit(exec_failed);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(exec_failed); /* a test that dies takes it along */
  (void)execve(arguments[0], (char *const *)(uintptr_t)arguments, (char *const *)(uintptr_t)environment);
  _exit(exec_failed);
}

pid_t api_spawn_on(const char *const *arguments, const struct api_run_options *options, const int fds[3]) {
  static const struct api_run_options plain;
  const char *environment[environment_max];
  if (options == NULL) options = &plain;
  make_environment(options, environment);
  pid_t parent = getpid(), pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) become(arguments, environment, fds, options->uid, parent);
  return pid;
}

/* A program that does not end when it should is killed, so that the test fails instead of hanging. */
static void kill_when_late(pid_t pid) {
  cleanup(guard_close) int fd = pidfd_open(pid, 0);
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  if (fd >= 0 && poll(&polled, 1, api_wait_ms_max) == 0) (void)kill(pid, SIGKILL);
}

int api_wait_exit(pid_t pid) {
  int status = 0;
  kill_when_late(pid);
  while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int memory_file(const char *text) {
  int fd = memfd_create("api", MFD_CLOEXEC);
  assert_true(fd >= 0);
  size_t size = text != NULL ? strlen(text) : 0;
  assert_int_equal(write(fd, text != NULL ? text : "", size), (ssize_t)size);
  assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
  return fd;
}

static char *memory_text(int fd, size_t *ret_size) {
  off_t size = lseek(fd, 0, SEEK_END);
  assert_true(size >= 0);
  char *text = guard_malloc((size_t)size + 1);
  assert_int_equal(pread(fd, text, (size_t)size, 0), size);
  text[size] = '\0';
  *ret_size = (size_t)size;
  return text;
}

void api_run(const char *const *arguments, const struct api_run_options *options, struct api_run *ret_run) {
  cleanup(guard_close) int in = memory_file(options != NULL ? options->input : NULL);
  cleanup(guard_close) int out = memory_file(NULL);
  cleanup(guard_close) int err = memory_file(NULL);
  const int fds[3] = {in, out, err};
  size_t err_size;
  *ret_run = (struct api_run){.code = api_wait_exit(api_spawn_on(arguments, options, fds))};
  ret_run->out = memory_text(out, &ret_run->out_size);
  ret_run->err = memory_text(err, &err_size);
}

void api_run_clear(struct api_run *run) {
  free(run->out);
  free(run->err);
  *run = (struct api_run){.out = NULL};
}

void api_orbitctl(const struct api_run_options *options, struct api_run *ret_run, ...) {
  const char *arguments[arguments_max] = {api_program("orbitctl")};
  va_list list;
  va_start(list, ret_run);
  for (unsigned i = 1; (arguments[i] = va_arg(list, const char *)) != NULL; i++) assert_true(i < arguments_max - 1);
  va_end(list);
  api_run(arguments, options, ret_run);
}

pid_t api_spawn(const char *const *arguments, const struct api_run_options *options, const char *out_path,
                const char *err_path) {
  cleanup(guard_close) int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  cleanup(guard_close) int out =
      open(out_path != NULL ? out_path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  cleanup(guard_close) int err =
      open(err_path != NULL ? err_path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int fds[3] = {in, out, err};
  assert_true(in >= 0 && out >= 0 && err >= 0);
  return api_spawn_on(arguments, options, fds);
}

/* ---- The data directory ---- */

static void read_credentials(const char *path, const char *name, char *out, size_t size) {
  struct bytes text = test_file_read(path);
  cleanup(json_clear) struct json json;
  struct fault fault;
  json_init(&json);
  assert_non_null(text.data);
  assert_int_equal(json_parse(&json, text, &fault), STATUS_OK);
  uint32_t token = json_member(&json, 0, name);
  assert_int_not_equal(token, 0);
  struct bytes value = json_string(&json, token);
  assert_true(value.size < size);
  (void)snprintf(out, size, "%.*s", (int)value.size, (const char *)value.data);
  free((void *)(uintptr_t)text.data);
}

void api_server_make(struct api_server *server) {
  struct api_run run;
  (void)api_program("orbitd");
  (void)api_program("orbitctl");
  *server = (struct api_server){.directory = test_directory_make()};
  assert_int_equal(port_hold(&server->http_port), 0);
  assert_int_equal(port_hold(&server->worker_port), 0);
  (void)snprintf(server->data, sizeof server->data, "%s/data", server->directory);
  (void)snprintf(server->credentials, sizeof server->credentials, "%s/credentials.json", server->directory);
  (void)snprintf(server->admin_credentials, sizeof server->admin_credentials, "%s/admin.json", server->directory);
  (void)snprintf(server->root_credentials, sizeof server->root_credentials, "%s/root.json", server->directory);
  (void)snprintf(server->log, sizeof server->log, "%s/log", server->directory);
  api_orbitctl(NULL, &run, "init", "--data", server->data, "--dev", "--recovery-access", "--credentials", server->credentials,
               "--admin-credentials", server->admin_credentials, "--root-credentials", server->root_credentials, NULL);
  if (run.code != 0) fail_msg("orbitctl init: %d: %s", run.code, run.err);
  api_run_clear(&run);
  read_credentials(server->credentials, "namespace_id", server->namespace_id, sizeof server->namespace_id);
  read_credentials(server->credentials, "application_id", server->application_id, sizeof server->application_id);
  read_credentials(server->credentials, "queue_id", server->queue_id, sizeof server->queue_id);
  read_credentials(server->credentials, "token", server->token, sizeof server->token);
  read_credentials(server->admin_credentials, "token", server->admin_token, sizeof server->admin_token);
  read_credentials(server->root_credentials, "token", server->root_token, sizeof server->root_token);
}

/* ---- The server ---- */

/* At its own ports, or, beside one that runs, at any. */
static void server_arguments(const struct api_server *server, bool beside, const char *const *more,
                             const char *arguments[arguments_max]) {
  const char *const first[] = {api_program("orbitd"),
                               "--data",
                               server->data,
                               "--listen",
                               beside ? "127.0.0.1:0" : server->http_port.address,
                               "--worker-listen",
                               beside ? "127.0.0.1:0" : server->worker_port.address,
                               "--log-format",
                               "json"};
  size_t count = sizeof first / sizeof first[0];
  memcpy(arguments, first, sizeof first);
  for (; more != NULL && *more != NULL; more++) {
    assert_true(count < arguments_max - 1);
    arguments[count++] = *more;
  }
  arguments[count] = NULL;
}

/* The first whole line of the log with this message, parsed; false when there is none. */
static bool find_line(const char *message, struct bytes text, struct json *json) {
  for (const uint8_t *at = text.data, *end = at + text.size, *line_end; at < end; at = line_end + 1) {
    struct fault fault;
    if ((line_end = memchr(at, '\n', (size_t)(end - at))) == NULL) break;
    if (json_parse(json, bytes_of(at, (size_t)(line_end - at)), &fault) != STATUS_OK) continue; /* a library's own words */
    uint32_t token = json_member(json, 0, "message");
    if (token != 0 && bytes_equal_text(json_string(json, token), message)) return true;
  }
  return false;
}

bool api_log_value(const struct api_server *server, const char *message, const char *field, char *out, size_t size) {
  struct bytes text = test_file_read(server->log);
  cleanup(json_clear) struct json json;
  json_init(&json);
  if (text.data == NULL) return false;
  uint32_t token = find_line(message, text, &json) ? json_member(&json, 0, field) : 0;
  struct bytes value = token != 0 ? json_string(&json, token) : bytes_of(NULL, 0);
  if (token != 0) (void)snprintf(out, size, "%.*s", (int)value.size, (const char *)value.data);
  free((void *)(uintptr_t)text.data);
  return token != 0;
}

static void print_log(const struct api_server *server) {
  struct bytes text = test_file_read(server->log);
  if (text.data != NULL) print_message("%.*s", (int)text.size, (const char *)text.data);
  free((void *)(uintptr_t)text.data);
}

/* Ready, or ended: then it is reaped and the test fails. */
static bool is_ready(struct api_server *server) {
  int status;
  if (api_log_value(server, "ready", "listen", server->address, sizeof server->address)) return true;
  if (waitpid(server->pid, &status, WNOHANG) == 0) return false;
  server->pid = 0;
  print_log(server);
  fail_msg("orbitd has ended before it was ready (wait status %d)", status);
  return false;
}

void api_server_start(struct api_server *server, const char *const *more) {
  const char *arguments[arguments_max];
  assert_int_equal(server->pid, 0);
  server_arguments(server, server->pid != 0, more, arguments);
  server->pid = api_spawn(arguments, NULL, NULL, server->log);
  api_wait(is_ready(server));
  assert_true(api_log_value(server, "ready", "worker_url", server->worker_url, sizeof server->worker_url));
  bool tls = strncmp(server->worker_url, "wss://", 6) == 0;
  (void)snprintf(server->url, sizeof server->url, "%s://%s", tls ? "https" : "http", server->address);
  const char *colon = strrchr(server->address, ':');
  assert_non_null(colon);
  server->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

void api_server_refused(struct api_server *server, const char *const *more, struct api_run *ret_run) {
  const char *arguments[arguments_max];
  server_arguments(server, server->pid != 0, more, arguments);
  api_run(arguments, NULL, ret_run);
}

int api_server_stop(struct api_server *server, int signal_number) {
  assert_int_not_equal(server->pid, 0);
  assert_int_equal(kill(server->pid, signal_number), 0);
  int code = api_wait_exit(server->pid);
  server->pid = 0;
  if (code != 0 && code != 128 + signal_number) print_log(server);
  return code;
}

void api_server_remove(struct api_server *server) {
  if (server->pid != 0) (void)api_server_stop(server, SIGKILL);
  if (server->directory != NULL) test_directory_remove(server->directory);
  server->directory = NULL;
  port_release(&server->http_port);
  port_release(&server->worker_port);
}

void api_server_up(struct api_server *server) {
  api_server_make(server);
  api_server_start(server, NULL);
}
