/* For the tests of liborbit: a real server of their own, and a proxy before its worker channel that loses what it is told to
 * lose. */
#ifndef ORBIT_TESTS_API_SDK_SERVER_H
#define ORBIT_TESTS_API_SDK_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "orbit.h"
#include "ports/port.h"
#include "support/support.h"

enum { wait_ms_max = 30000, wait_step_ms = 10, proxy_links_max = 16 };

static inline void pause_ms(long ms) {
  const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  (void)nanosleep(&time, NULL);
}

/* Waits for a condition, not for luck: evaluates it until it holds, for wait_ms_max at most. */
#define wait_for(condition)                                                                            \
  do {                                                                                                 \
    int waited_ms = 0;                                                                                 \
    while (!(condition) && waited_ms < wait_ms_max) pause_ms(wait_step_ms), waited_ms += wait_step_ms; \
    assert_true(condition);                                                                            \
  } while (0)

/* ---- The server ---- */

struct server {
  char *directory;
  char data[512], credentials[512], log[512];
  struct port http, worker; /* the same over a restart */
  char url[96], worker_url[128];
  pid_t pid;
};

static inline pid_t program_start(const char *const arguments[], const char *out, const char *err) {
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid != 0) return pid;
  int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), err_fd = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out_fd >= 0 && err_fd >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 && dup2(err_fd, STDERR_FILENO) >= 0) {
    (void)execv(arguments[0], (char *const *)(uintptr_t)arguments);
  }
  _exit(127);
}

static inline int program_wait(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The text after `before` up to the next quote, in the file; false while it is not there. */
static inline bool file_value(const char *path, const char *before, char *out, size_t size) {
  struct bytes text = test_file_read(path);
  if (text.data == NULL) return false;
  const uint8_t *found = memmem(text.data, text.size, before, strlen(before));
  bool good = false;
  if (found != NULL) {
    const uint8_t *value = found + strlen(before), *end = memchr(value, '"', (size_t)(text.data + text.size - value));
    good = end != NULL && (size_t)(end - value) < size;
    if (good) (void)snprintf(out, size, "%.*s", (int)(end - value), (const char *)value);
  }
  free((void *)(uintptr_t)text.data);
  return good;
}

static inline void server_start(struct server *server) {
  const char *arguments[] = {
      ORBIT_BIN_DIR "/orbitd", "--data",       server->data, "--listen", server->http.address, "--worker-listen",
      server->worker.address,  "--log-format", "json",       NULL};
  (void)unlink(server->log); /* the last server's: it says ready too, until the new one begins to write */
  server->pid = program_start(arguments, "/dev/null", server->log);
  wait_for(file_value(server->log, "\"message\":\"ready\"", server->url, sizeof server->url) ||
           waitpid(server->pid, NULL, WNOHANG) != 0);
  char listen[64];
  assert_true(file_value(server->log, "\"listen\":\"", listen, sizeof listen));
  assert_true(file_value(server->log, "\"worker_url\":\"", server->worker_url, sizeof server->worker_url));
  (void)snprintf(server->url, sizeof server->url, "http://%s", listen);
}

static inline void server_end(struct server *server, int signal_number) {
  assert_int_equal(kill(server->pid, signal_number), 0);
  int code = program_wait(server->pid);
  assert_int_equal(code, signal_number == SIGKILL ? 128 + SIGKILL : 0);
}

/* False, with a message, when the build has not made what these tests start: then they fail instead of passing unrun. */
static inline bool programs_are_built(void) {
  static const char *const programs[] = {ORBIT_BIN_DIR "/orbitd", ORBIT_BIN_DIR "/orbitctl", ORBIT_BIN_DIR "/example-retry"};
  bool built = true;
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    if (access(programs[i], X_OK) == 0) continue;
    print_error("%s has not been built\n", programs[i]);
    built = false;
  }
  return built;
}

static inline void server_up(struct server *server) {
  *server = (struct server){.directory = test_directory_make()};
  assert_int_equal(port_hold(&server->http), 0);
  assert_int_equal(port_hold(&server->worker), 0);
  (void)snprintf(server->data, sizeof server->data, "%s/data", server->directory);
  (void)snprintf(server->credentials, sizeof server->credentials, "%s/credentials.json", server->directory);
  (void)snprintf(server->log, sizeof server->log, "%s/log", server->directory);
  const char *arguments[] = {
      ORBIT_BIN_DIR "/orbitctl", "init", "--data", server->data, "--dev", "--recovery-access", "--credentials",
      server->credentials,       NULL};
  assert_int_equal(program_wait(program_start(arguments, "/dev/null", server->log)), 0);
  server_start(server);
}

static inline void server_down(struct server *server) {
  server_end(server, SIGTERM);
  test_directory_remove(server->directory);
  port_release(&server->http);
  port_release(&server->worker);
}

/* ---- The proxy ---- */

/* Passes bytes both ways. When `lose_after` is not negative, that many pieces from the server that hold a command.result are
 * passed, and at the next one both sides are closed without passing it: the server has done it, and the worker does not know.
 */
struct proxy {
  int listener;
  char url[64];
  struct sockaddr_in server;
  struct link {
    int worker, server;
  } links[proxy_links_max];
  int link_count;
  atomic_int lose_after;
  atomic_int losses, accepted;
  atomic_bool ended, cut; /* cut: close everything now */
  pthread_t thread;
};

static inline void link_close(struct proxy *proxy, int index) {
  (void)close(proxy->links[index].worker);
  (void)close(proxy->links[index].server);
  proxy->links[index] = proxy->links[--proxy->link_count];
}

/* False: the link is to be closed. */
static inline bool link_pass(struct proxy *proxy, int from, int to, bool from_server) {
  char bytes[65536];
  ssize_t got = recv(from, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  if (from_server && memmem(bytes, (size_t)got, "command.result", 14) != NULL && atomic_load(&proxy->lose_after) >= 0 &&
      atomic_fetch_sub(&proxy->lose_after, 1) == 0) {
    atomic_fetch_add(&proxy->losses, 1);
    return false;
  }
  for (ssize_t sent = 0; sent < got;) {
    ssize_t count = send(to, bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL);
    if (count < 0) return false;
    sent += count;
  }
  return true;
}

static inline void link_open(struct proxy *proxy) {
  int worker = accept(proxy->listener, NULL, NULL), one = 1;
  if (worker < 0) return;
  atomic_fetch_add(&proxy->accepted, 1);
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (proxy->link_count == proxy_links_max || connect(server, (struct sockaddr *)&proxy->server, sizeof proxy->server) != 0) {
    (void)close(worker);
    (void)close(server);
    return;
  }
  (void)setsockopt(worker, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  proxy->links[proxy->link_count++] = (struct link){worker, server};
}

static inline void *proxy_main(void *context) {
  struct proxy *proxy = context;
  while (!atomic_load(&proxy->ended)) {
    struct pollfd polled[1 + 2 * proxy_links_max] = {{.fd = proxy->listener, .events = POLLIN}};
    int count = proxy->link_count;
    for (int i = 0; i < count; i++) {
      polled[1 + 2 * i] = (struct pollfd){.fd = proxy->links[i].worker, .events = POLLIN};
      polled[2 + 2 * i] = (struct pollfd){.fd = proxy->links[i].server, .events = POLLIN};
    }
    (void)poll(polled, (nfds_t)(1 + 2 * count), wait_step_ms);
    bool cut = atomic_exchange(&proxy->cut, false);
    for (int i = count - 1; i >= 0; i--) {
      bool good = !cut;
      if (good && polled[1 + 2 * i].revents != 0)
        good = link_pass(proxy, proxy->links[i].worker, proxy->links[i].server, false);
      if (good && polled[2 + 2 * i].revents != 0) good = link_pass(proxy, proxy->links[i].server, proxy->links[i].worker, true);
      if (!good) link_close(proxy, i);
    }
    if (polled[0].revents != 0) link_open(proxy);
  }
  while (proxy->link_count > 0) link_close(proxy, 0);
  return NULL;
}

static inline void proxy_up(struct proxy *proxy, const struct server *server) {
  memset(proxy, 0, sizeof *proxy);
  atomic_store(&proxy->lose_after, -1);
  proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(proxy->listener, 8), 0);
  assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
  (void)snprintf(proxy->url, sizeof proxy->url, "ws://127.0.0.1:%u/v1/worker", ntohs(address.sin_port));
  const char *port = strrchr(server->worker.address, ':');
  assert_non_null(port);
  proxy->server = (struct sockaddr_in){.sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                       .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10))};
  assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_main, proxy), 0);
}

static inline void proxy_down(struct proxy *proxy) {
  atomic_store(&proxy->ended, true);
  (void)pthread_join(proxy->thread, NULL);
  (void)close(proxy->listener);
}

#endif
