/* Owns how a port is held over the restarts of a server. */
#include "ports/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int port_hold(struct port *ret_port) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof name;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 || bind(fd, (struct sockaddr *)&name, size) != 0 ||
      getsockname(fd, (struct sockaddr *)&name, &size) != 0) {
    (void)close(fd);
    return -1;
  }
  ret_port->fd = fd;
  (void)snprintf(ret_port->address, sizeof ret_port->address, "127.0.0.1:%u", ntohs(name.sin_port));
  return 0;
}

void port_release(struct port *port) {
  if (port->address[0] != '\0') (void)close(port->fd);
  *port = (struct port){.fd = 0};
}
