/* An orbitd of one's own: a fresh data directory on a disk, start, SIGTERM, SIGKILL, start again; and what it used. */
#ifndef ORBIT_TOOLS_LOAD_SERVER_H
#define ORBIT_TOOLS_LOAD_SERVER_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "load/stream.h"
#include "ports/port.h"

enum { server_path_max = 512, server_token_max = 256 };

/* What a client needs to know. */
struct server_access {
  struct address http, worker;
  char token[server_token_max];
  char queue_id[33];
};

struct server {
  char directory[server_path_max]; /* "" when there is none; holds data/, credentials.json and server.log */
  char data[server_path_max + 8];
  char credentials[server_path_max + 20];
  struct server_access access;   /* addresses since the first start; they stay the same over restarts */
  struct port port, worker_port; /* where it listens */
  pid_t pid;                     /* 0: not running */
  int pid_fd;
  int log_fd;           /* its standard error */
  pthread_t log_thread; /* copies the log to server.log and looks for the lines below */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool ready, ended; /* said "ready"; closed its standard error */
  int64_t ready_ns;  /* when it said so, by loop_now_ns */
  uint64_t replay_events;
  double replay_seconds;
  char listen[128], worker_url[256];
  char last_error[256];     /* the message of its last line with the level "error" since the start */
  char *const *environment; /* of the next starts; the caller's. NULL: this program's own */
};

/* A directory below $TMPDIR (if that is on a disk) or /var/tmp, with a log and a credential made by orbitctl, which is looked
 * for beside this program. IO_ERROR, INVALID_ARGUMENT. */
enum status server_make(struct server *ret_server, struct fault *fault);
/* Starts orbitd from beside this program and returns once it runs; it dies with the calling thread. */
enum status server_spawn(struct server *server, struct fault *fault);
/* Waits for its line "ready" and takes the addresses from it. UNAVAILABLE: it ended, or was not ready within two minutes. */
enum status server_wait_ready(struct server *server, struct fault *fault);
/* SIGTERM, and waits for its end. UNAVAILABLE: not done within a minute (it is killed then), or another exit code than 0. */
enum status server_stop(struct server *server, struct fault *fault);
/* True when it has ended by itself; server_wait_end says how. */
bool server_has_ended(const struct server *server);
/* Waits for an end that comes by itself: *ret_wait as waitpid(2) says it. UNAVAILABLE: it runs on after ms. */
enum status server_wait_end(struct server *server, unsigned ms, int *ret_wait, struct fault *fault);
/* SIGKILL, and waits for its end. */
void server_kill(struct server *server);
/* Kills it if it runs, and removes the directory unless keep. */
void server_clear(struct server *server, bool keep);

/* Reads a credentials file; url NULL: the file's. Asks the server where its worker channel is. */
enum status server_access_read(const char *credentials, const char *url, struct server_access *ret_access, struct fault *fault);

struct usage {
  double cpu_us;       /* user and system, all threads, from the start of the process */
  uint64_t rss_bytes;  /* resident, pages of the log's map included */
  uint64_t anon_bytes; /* of them, memory that is no file's */
};
/* Zeroes when the process is gone. */
struct usage usage_read(pid_t pid);

/* What a log holds, read offline, read-only, from the events after a position on. */
struct log_facts {
  uint64_t commits, events, last_seq;
  uint64_t used_bytes; /* pages in use of the whole file */
};
/* Of a log that may be in use: pages in use of the whole file. */
enum status log_used_read(const char *data, uint64_t *ret_bytes, struct fault *fault);
enum status log_facts_read(const char *data, uint64_t after_seq, struct log_facts *ret_facts, struct fault *fault);

#endif
