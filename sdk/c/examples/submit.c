/* Submits one task and prints it. The key names the operation: running this again with the same key and content gives the same
 * task and makes no second one, so that after a lost answer the same line can simply be repeated.
 *
 *     ORBIT_CREDENTIALS_FILE=credentials.json submit KEY HANDLER HANDLER_VERSION PAYLOAD
 *     submit order-7 text.normalize v1 '{"text":"hello"}' */
#include <orbit.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *step, const struct orbit_error *error) {
  fprintf(stderr, "submit: %s: %s %s: %s", step, orbit_status_name(error->status), error->code, error->message);
  if (error->field[0] != '\0') fprintf(stderr, " (%s)", error->field);
  if (error->retry_after_ms != 0) fprintf(stderr, ", try again in %llu ms", (unsigned long long)error->retry_after_ms);
  fprintf(stderr, "\n");
  return error->status == ORBIT_REFUSED || error->status == ORBIT_INVALID_ARGUMENT ? 1 : 3;
}

int main(int argc, char **argv) {
  struct orbit_error error;
  struct orbit_credentials *credentials = NULL;
  struct orbit_client *client = NULL;
  struct orbit_task *task = NULL;
  if (argc != 5) {
    fprintf(stderr, "usage: submit KEY HANDLER HANDLER_VERSION PAYLOAD\n");
    return 2;
  }
  if (orbit_credentials_load(NULL, &credentials, &error) != ORBIT_OK) return failed("credentials", &error);
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  options.url = credentials->url;
  options.token = credentials->token;
  int code = 0;
  if (orbit_client_new(&options, &client, &error) != ORBIT_OK) code = failed("client", &error);

  struct orbit_task_request request = ORBIT_TASK_REQUEST_INIT;
  request.queue_id = credentials->queue_id;
  request.handler = argv[2];
  request.handler_version = argv[3];
  request.payload_version = "v1";
  request.payload = argv[4];
  request.payload_size = strlen(argv[4]);
  request.task_timeout_ms = 60000;
  if (code == 0 && orbit_submit_task(client, argv[1], &request, &task, &error) != ORBIT_OK) code = failed("task", &error);
  if (code == 0) printf("%s%s\n", task->json, task->deduplicated ? " (was submitted before)" : "");

  orbit_task_free(task);
  orbit_client_free(client);
  orbit_credentials_free(credentials);
  return code;
}
