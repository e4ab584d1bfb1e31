/* Owns the connection of orbitctl to a server, and the sentences about its failures. */
#include "online.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"

enum { key_url = 900, key_credentials };

static const struct argp_option option_rows[] = {
    {NULL, 0, NULL, 0, "Common options:", 90},
    {"output", 'o', "FORMAT", 0, "text, json (the answer's data as the server gave it), jsonl (an object a line) or csv", 90},
    {"url", key_url, "URL", 0, "the server's address (ORBIT_URL, else the credentials file's url)", 90},
    {"credentials", key_credentials, "FILE", 0,
     "credentials file (ORBIT_CREDENTIALS_FILE, else $XDG_CONFIG_HOME/orbit/credentials.json)", 90},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t take_option(int key, char *argument, struct argp_state *state) {
  struct online *online = state->input;
  switch (key) {
    case 'o':
      if (!print_format_parse(argument, &online->format))
        argp_error(state, "-o \"%s\": the formats are text, json, jsonl and csv", argument);
      break;
    case key_url:
      online->url = argument;
      break;
    case key_credentials:
      online->credentials_path = argument;
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

const struct argp online_argp = {option_rows, take_option, NULL, NULL, NULL, NULL, NULL};

int online_open(struct online *online) {
  struct orbit_error error;
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  if (online->url != NULL && setenv("ORBIT_URL", online->url, 1) != 0) return ctl_say(exit_cannot_run, "out of memory");
  int status = orbit_credentials_load(online->credentials_path, &online->credentials, &error);
  if (status == ORBIT_IO_ERROR)
    return ctl_say(
        exit_cannot_run,
        "%s\n  say which with --credentials FILE or ORBIT_CREDENTIALS_FILE; \"orbitctl init --dev\" makes one with a new data "
        "directory",
        error.message);
  if (status != ORBIT_OK)
    return ctl_say(exit_cannot_run, "%s%s%s", error.message, error.field[0] != 0 ? ", at " : "", error.field);
  if (online->credentials->exposed)
    (void)ctl_say(exit_done, "warning: others can read %s: chmod 600 it, and rotate the token if it may have been seen",
                  online->credentials->path);
  options.url = online->credentials->url;
  options.token = online->credentials->token;
  options.user_agent = "orbitctl/" ORBIT_VERSION;
  if (orbit_client_new(&options, &online->client, &error) != ORBIT_OK) return ctl_say(exit_cannot_run, "%s", error.message);
  return exit_done;
}

void online_close(struct online *online) {
  orbit_client_free(online->client);
  orbit_credentials_free(online->credentials);
  online->client = NULL;
  online->credentials = NULL;
}

/* What to do about a refusal: by its code. */
static const char *advice(const char *code) {
  static const struct {
    const char *code, *text;
  } rows[] = {
      {"UNAUTHENTICATED", "the server does not know this token (any more): is the credentials file this server's?"},
      {"PERMISSION_DENIED", "use a credential that has the permission"},
      {"NOT_FOUND", "ids are looked up in the credential's namespace and queues only"},
      {"IDEMPOTENCY_CONFLICT", "this key was used with other content: repeat exactly that, or use another key"},
      {"QUEUE_FULL", "try again later, or raise the queue's max_unfinished"},
      {"APPLICATION_FULL", "try again later, or raise the application's max_unfinished"},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].code, code) == 0) return rows[i].text;
  return NULL;
}

static int refused(const struct orbit_error *error, const char *repeat) {
  char field[sizeof error->field + 16] = "", retry[64] = "", request[sizeof error->request_id + 16] = "";
  const char *text = advice(error->code);
  if (error->field[0] != 0) (void)snprintf(field, sizeof field, " (field %s)", error->field);
  if (error->retry_after_ms != 0) (void)snprintf(retry, sizeof retry, "; try again in %" PRIu64 " ms", error->retry_after_ms);
  if (error->request_id[0] != 0) (void)snprintf(request, sizeof request, " [request %s]", error->request_id);
  return ctl_say(error->http_status >= 500 ? exit_cannot_run : exit_refused, "%s: %s%s%s%s%s%s%s",
                 error->code[0] != 0 ? error->code : "refused", error->message, field, retry, request,
                 text != NULL ? "\n  " : "", text != NULL ? text : "", error->http_status >= 500 ? repeat : "");
}

bool online_may_pass(const struct orbit_error *error) {
  return error->status == ORBIT_NOT_CONNECTED || error->status == ORBIT_NO_ANSWER ||
         (error->status == ORBIT_REFUSED && (error->http_status == 503 || error->http_status == 429));
}

void online_pause_ms(uint64_t ms) {
  struct timespec rest = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
  while (nanosleep(&rest, &rest) != 0) continue;
}

int online_failed(const struct online *online, const struct orbit_error *error, const char *key) {
  const char *url = online->credentials->url;
  char repeat[192] = "";
  if (key != NULL)
    (void)snprintf(repeat, sizeof repeat, "\n  it may have been carried out: repeat it with --key %s, which is safe", key);
  switch (error->status) {
    case ORBIT_REFUSED:
      return refused(error, repeat);
    case ORBIT_INVALID_ARGUMENT:
      return ctl_say(exit_misuse, "%s%s%s", error->message, error->field[0] != 0 ? ", at " : "", error->field);
    case ORBIT_NOT_CONNECTED:
      return ctl_say(
          exit_cannot_run, "%s: is orbitd running at %s?\n  --url or ORBIT_URL names another address%s", error->message, url,
          strncmp(url, "https:", 6) == 0 ? "; ORBIT_CA_FILE names the file of the authority that vouches for it" : "");
    case ORBIT_NO_ANSWER:
      return ctl_say(exit_cannot_run, "no answer from %s: %s%s", url, error->message, repeat);
    case ORBIT_BAD_ANSWER:
      return ctl_say(exit_cannot_run, "%s: %s; is that an Orbit server?%s", url, error->message, repeat);
    default:
      return ctl_say(exit_cannot_run, "%s", error->message);
  }
}

int online_call(struct online *online, const char *method, const char *path, const char *key, struct bytes body,
                struct json *json, struct orbit_response **ret_response, struct orbit_error *error) {
  struct orbit_response *response;
  struct fault fault = {.status = STATUS_OK};
  int status = orbit_call(online->client, method, path, key, (const char *)body.data, body.size, &response, error);
  if (status != ORBIT_OK) return status;
  if (response->data == NULL || json_parse(json, bytes_of(response->data, response->data_size), &fault) != STATUS_OK ||
      json->tokens[0].type != JSON_OBJECT) {
    orbit_response_free(response);
    *error = (struct orbit_error){.status = ORBIT_BAD_ANSWER, .message = "the answer is none of Orbit's"};
    return ORBIT_BAD_ANSWER;
  }
  *ret_response = response;
  return ORBIT_OK;
}
