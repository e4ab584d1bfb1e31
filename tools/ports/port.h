/* A port of the loopback that stays one server's own while that server stops and starts. */
#ifndef ORBIT_TOOLS_PORTS_PORT_H
#define ORBIT_TOOLS_PORTS_PORT_H

/* All zero: none is held. */
struct port {
  char address[24]; /* "127.0.0.1:65535" */
  int fd;
};

/* Chooses a free port and holds it with a socket that is bound and never listens: a server that sets SO_REUSEADDR can bind and
 * listen there again and again, a connection made while none runs is refused, and the kernel gives the port to nobody else –
 * not to another test that asks for any port, nor to the near end of a client's connection, which could meet itself there. 0,
 * or -1 with errno. */
int port_hold(struct port *ret_port);
/* Gives it up; nothing where none is held. */
void port_release(struct port *port);

#endif
