/* For the tests of liborbit's producer side: a server that says whatever a case needs, one connection after the other, and
 * keeps what it was asked. */
#ifndef ORBIT_TESTS_API_SDK_SCRIPTED_H
#define ORBIT_TESTS_API_SDK_SCRIPTED_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/guard.h"
#include "support/support.h"

struct fake {
  int listener;
  uint16_t port;
  pthread_t thread;
  pthread_mutex_t lock;
  const char *answer; /* whole, head and body; NULL: the connection is closed without one */
  char request[8192]; /* the last one */
  int requests;       /* since the last fake_say */
  int connections;    /* served so far, one after the other */
  char heard[8192];   /* a copy of request for the test's thread */
  char url[64];
};

/* Reads one request: head, and body as Content-Length says. False: the connection is over. */
static bool request_read(int fd, char *out, size_t size) {
  size_t used = 0;
  for (;;) {
    ssize_t got = recv(fd, out + used, size - 1 - used, 0);
    if (got <= 0) return false;
    used += (size_t)got;
    out[used] = '\0';
    const char *end = strstr(out, "\r\n\r\n"), *length = strcasestr(out, "Content-Length:");
    if (end == NULL) continue;
    size_t body = length != NULL && length < end ? strtoul(length + 15, NULL, 10) : 0;
    if (used >= (size_t)(end - out) + 4 + body) return true;
  }
}

static void *fake_main(void *context) {
  struct fake *fake = context;
  for (;;) {
    int fd = accept(fake->listener, NULL, NULL);
    if (fd < 0) return NULL;
    (void)pthread_mutex_lock(&fake->lock);
    fake->connections++;
    (void)pthread_mutex_unlock(&fake->lock);
    char request[sizeof fake->request];
    while (request_read(fd, request, sizeof request)) {
      (void)pthread_mutex_lock(&fake->lock);
      memcpy(fake->request, request, sizeof request);
      fake->requests++;
      char *answer = fake->answer != NULL ? strdup(fake->answer) : NULL; /* the test frees its own once it is answered */
      (void)pthread_mutex_unlock(&fake->lock);
      bool sent = answer != NULL && send(fd, answer, strlen(answer), MSG_NOSIGNAL) >= 0;
      free(answer);
      if (!sent) break;
    }
    (void)close(fd);
  }
}

static void fake_start(struct fake *fake) {
  *fake = (struct fake){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  assert_int_equal(bind(fake->listener, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(fake->listener, 8), 0);
  assert_int_equal(getsockname(fake->listener, (struct sockaddr *)&address, &size), 0);
  fake->port = ntohs(address.sin_port);
  (void)snprintf(fake->url, sizeof fake->url, "http://127.0.0.1:%u", fake->port);
  (void)pthread_mutex_init(&fake->lock, NULL);
  assert_int_equal(pthread_create(&fake->thread, NULL, fake_main, fake), 0);
}

static void fake_stop(struct fake *fake) {
  (void)shutdown(fake->listener, SHUT_RDWR);
  (void)pthread_join(fake->thread, NULL);
  (void)close(fake->listener);
  (void)pthread_mutex_destroy(&fake->lock);
}

/* From now on the answer is this. */
static void fake_say(struct fake *fake, const char *answer) {
  (void)pthread_mutex_lock(&fake->lock);
  fake->answer = answer;
  fake->requests = 0;
  (void)pthread_mutex_unlock(&fake->lock);
}

static int fake_requests(struct fake *fake) {
  (void)pthread_mutex_lock(&fake->lock);
  int requests = fake->requests;
  (void)pthread_mutex_unlock(&fake->lock);
  return requests;
}

/* The last request; valid until the next call. */
static const char *fake_request(struct fake *fake) {
  (void)pthread_mutex_lock(&fake->lock);
  memcpy(fake->heard, fake->request, sizeof fake->heard);
  (void)pthread_mutex_unlock(&fake->lock);
  return fake->heard;
}

static char *answer_make(int status, const char *headers, const char *body) {
  char *answer = NULL;
  int length = asprintf(
      &answer, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nX-Request-Id: 0123\r\n%sContent-Length: %zu\r\n\r\n%s",
      status, headers, strlen(body), body);
  assert_true(length > 0);
  return answer;
}

#endif
