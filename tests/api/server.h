/* What the tests of the programs share: a real orbitd of their own on a fresh data directory, any program run to its end, and
 * HTTP byte by byte. Everything here fails the test that calls it when it cannot do what it says; children die with the test.
 */
#ifndef ORBIT_TESTS_API_SERVER_H
#define ORBIT_TESTS_API_SERVER_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "codec/json.h"
#include "ports/port.h"
#include "support/support.h"

/* ---- Waiting: for a condition, never for luck ---- */

enum { api_wait_ms_max = 60000 };

int64_t api_now_ms(void); /* of a clock that only runs forward */
void api_nap(void);       /* between two looks at a condition */

/* Evaluates the condition until it holds; fails when it does not within api_wait_ms_max. */
#define api_wait(condition)                                                                                     \
  do {                                                                                                          \
    const int64_t api_wait_until = api_now_ms() + api_wait_ms_max;                                              \
    while (!(condition)) {                                                                                      \
      if (api_now_ms() > api_wait_until) fail_msg("%s:%d: waited in vain: %s", __FILE__, __LINE__, #condition); \
      api_nap();                                                                                                \
    }                                                                                                           \
  } while (0)

/* ---- Programs ---- */

/* The path of a program of this build ("orbitd"). Skips the calling test, and says so, when it has not been built. Static,
 * valid until the next call. */
const char *api_program(const char *name);

/* What a program did. Texts end with a NUL. For api_run_clear. */
struct api_run {
  int code; /* exit code, or 128 + signal */
  char *out, *err;
  size_t out_size;
};

struct api_run_options {
  const char *const *environment; /* "NAME=value" …, NULL-ended, or NULL; ORBIT_*, XDG_* and NO_COLOR are else not passed on */
  const char *input;              /* stdin; NULL: empty */
  uid_t uid;                      /* run as this user; 0: as is */
};

/* Runs arguments[0] (a path; NULL-ended) to its end. options may be NULL. */
void api_run(const char *const *arguments, const struct api_run_options *options, struct api_run *ret_run);
void api_run_clear(struct api_run *run);

/* The same for `orbitctl …`: a NULL-ended list of arguments behind the name. */
void api_orbitctl(const struct api_run_options *options, struct api_run *ret_run, ...) __attribute__((sentinel));

/* Starts a program with stdout and stderr going to files (NULL: /dev/null), and returns. */
pid_t api_spawn(const char *const *arguments, const struct api_run_options *options, const char *out_path,
                const char *err_path);
/* The same with stdin, stdout and stderr as given, for instance a terminal. The caller closes them. */
pid_t api_spawn_on(const char *const *arguments, const struct api_run_options *options, const int fds[3]);
/* Waits for its end: exit code, or 128 + signal. What has not ended within api_wait_ms_max is killed. */
int api_wait_exit(pid_t pid);

/* ---- The server ---- */

struct api_server {
  char *directory; /* everything is below it */
  char data[256], credentials[256], admin_credentials[256], root_credentials[256];
  struct port http_port, worker_port; /* where each of its servers listens */
  char log[256];                      /* stderr of the running or the last server: JSON lines */
  char namespace_id[33], application_id[33], queue_id[33];
  char token[128];       /* submit, read, cancel, consume, queues:read, events:read, review, retry, audit */
  char admin_token[128]; /* admin */
  char root_token[128];  /* root */
  /* of the running server */
  pid_t pid; /* 0: none */
  uint16_t port;
  char address[64];              /* ADDR:PORT */
  char url[96], worker_url[160]; /* https:// and wss:// when it was started with a certificate */
};

/* A data directory with its credentials, made by `orbitctl init`; nothing runs yet. Skips the test when the programs are not
 * built. */
void api_server_make(struct api_server *server);
/* Starts orbitd on it, any free ports, JSON log, and waits until it says that it is ready. more: further arguments, NULL-ended,
 * or NULL. */
void api_server_start(struct api_server *server, const char *const *more);
/* Starts orbitd and expects it to end by itself: its exit code and messages. */
void api_server_refused(struct api_server *server, const char *const *more, struct api_run *ret_run);
/* Sends the signal and waits for the end: exit code, or 128 + signal. */
int api_server_stop(struct api_server *server, int signal_number);
/* Kills what runs and removes everything. Fit for a teardown: does nothing twice. */
void api_server_remove(struct api_server *server);
/* make and start in one. */
void api_server_up(struct api_server *server);

/* The value of a field in the first line of the server's log that has this message (each start begins a new log); false when
 * there is none. */
bool api_log_value(const struct api_server *server, const char *message, const char *field, char *out, size_t size);

/* ---- HTTP ---- */

struct http_reply {
  int status; /* 0: the connection ended without an answer */
  char *head; /* status line and headers, to the empty line */
  char *body; /* NUL-terminated */
  size_t body_size;
  bool ended;       /* the server ended the connection behind it */
  struct json json; /* the body, when it is JSON */
  bool is_json;
};

void http_reply_init(struct http_reply *reply);
void http_reply_clear(struct http_reply *reply);

int http_connect(const struct api_server *server);
/* Sends all of it; a connection that the server has ended is no failure (its answer is there to be read). */
void http_send(int fd, const void *data, size_t size);
/* Reads one answer: by Content-Length, by chunks, or to the end of the connection. 100 Continue is skipped. */
void http_receive(int fd, struct http_reply *reply);

/* One request on a connection of its own: exactly these bytes. */
void http_raw(const struct api_server *server, const char *text, struct http_reply *reply);
/* token, key, body NULL: without. A body comes with its Content-Type. On the connection fd, or with fd < 0 one of its own. */
struct http_request {
  const char *method, *target, *token, *key, *body;
  size_t body_size;    /* 0: strlen(body) */
  const char *headers; /* further lines, each ended with \r\n, or NULL */
};
void http_exchange(const struct api_server *server, int fd, const struct http_request *request, struct http_reply *reply);
/* The usual two, on connections of their own. */
void http_get(const struct api_server *server, const char *token, const char *target, struct http_reply *reply);
void http_post(const struct api_server *server, const char *token, const char *target, const char *key, const char *body,
               struct http_reply *reply);

/* The value of a header, or NULL. Valid until the next call (of the same thread). */
const char *http_header(const struct http_reply *reply, const char *name);
/* A value of the body by the names on the way to it, array items by number ("data.items.0.id"): strings decoded, all else as
 * written; data NULL when there is none. Valid as long as the reply. */
struct bytes http_value(struct http_reply *reply, const char *path);
/* The same as a text, "" when there is none. Valid until the eighth call from here (of the same thread). */
const char *http_text(struct http_reply *reply, const char *path);
/* Has the reply this status, the envelope, its headers; and, where it is an error, this code (NULL: whichever) and this field
 * (NULL: whichever). */
void http_expect(struct http_reply *reply, int status, const char *code, const char *field);

#endif
