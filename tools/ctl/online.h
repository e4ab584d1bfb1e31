/* What every command that talks to a server shares: whom it talks to, as whom, and what it says when that does not work. */
#ifndef ORBIT_TOOLS_CTL_ONLINE_H
#define ORBIT_TOOLS_CTL_ONLINE_H

#include <argp.h>

#include "codec/json.h"
#include "orbit.h"
#include "print.h"

struct online {
  const char *url, *credentials_path; /* as given on the command line, or NULL */
  enum print_format format;
  struct orbit_credentials *credentials;
  struct orbit_client *client;
};

/* The options of all such commands (-o, --url, --credentials), as a child parser whose input is a struct online. */
extern const struct argp online_argp;

/* Reads the credentials and makes the client. Returns an exit code, after saying why where it is not exit_done; online_close
 * follows in any case (it suits the cleanup attribute). */
int online_open(struct online *online);
void online_close(struct online *online);

/* Worth asking again: the server is away, or says so. */
bool online_may_pass(const struct orbit_error *error);
void online_pause_ms(uint64_t ms);

/* Says what went wrong and what to do about it; returns the exit code. key: the operation's, where a repeat needs it, else
 * NULL. */
int online_failed(const struct online *online, const struct orbit_error *error, const char *key);

/* One call; `data` of its answer parsed into json, whose text stays valid as long as *ret_response. For orbit_response_free.
 * ORBIT_OK, the errors of orbit_call, or ORBIT_BAD_ANSWER. */
int online_call(struct online *online, const char *method, const char *path, const char *key, struct bytes body,
                struct json *json, struct orbit_response **ret_response, struct orbit_error *error);

#endif
