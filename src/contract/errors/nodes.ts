import { define, type None } from './entry.js'

/** Errors about the nodes of a cluster. */
export const nodeErrors = {
  node_not_found: define<{ name: string }>({
    status: 404,
    text: ({ name }) => `No node has the name ${JSON.stringify(name)}. GET /v2/nodes lists all.`,
  }),
  node_not_running: define<{ name: string; state: string }>({
    status: 409,
    text: ({ name, state }) =>
      state === 'draining'
        ? `The node ${name} is draining, so it takes no databases. Choose another node, or end the drain: homeport nodes resume ${name}.`
        : `The node ${name} is not running (it is ${state}). Start it first, or choose another node.`,
  }),
  node_running: define<{ name: string }>({
    status: 409,
    text: ({ name }) => `The node ${name} is running, so it cannot be removed. Drain and stop it first.`,
  }),
  database_home_runs: define<{ databaseId: string; node: string }>({
    status: 409,
    text: ({ databaseId, node }) =>
      `The node ${node} is running and serves the database ${databaseId}. A recovery loses all writes after the backup, so it is ` +
      'only for nodes that are gone. Restore the backup instead, or stop that node first.',
  }),
  node_has_databases: define<{ name: string; databases: number }>({
    status: 409,
    text: ({ name, databases }) =>
      `The node ${name} is the home of ${databases} ${databases === 1 ? 'database' : 'databases'}, and their data is on its disk. Start it and move them away: homeport nodes drain ${name}. If it is gone for good with its disk: homeport nodes remove ${name} --lose-databases.`,
  }),
  node_has_standbys: define<{ name: string; databases: number }>({
    status: 409,
    text: ({ name, databases }) =>
      `Another node has a complete copy of ${databases} ${databases === 1 ? 'database' : 'databases'} of the node ${name}, which would be lost too. Start the node with the copy: it takes over if ${name} is dead. List the copies with homeport nodes standbys. If a copy is gone as well, give it up with homeport nodes standby <database> --off.`,
  }),
  database_is_there: define<{ databaseId: string; node: string }>({
    status: 409,
    text: ({ databaseId, node }) =>
      `The node ${node} already serves the database ${databaseId}. Name another node: GET /v2/nodes lists them.`,
  }),
  database_standby_there: define<{ databaseId: string; node: string }>({
    status: 409,
    text: ({ databaseId, node }) =>
      `The node ${node} keeps a standby of the database ${databaseId}, and would delete that copy first. Name another node, or remove the standby: homeport nodes standby ${databaseId} --off ${node}.`,
  }),
  standbys_need_upgrade: define<{ nodes: readonly string[] }>({
    status: 409,
    text: ({ nodes }) =>
      `These nodes run a version that knows only one standby of a database: ${nodes.join(', ')}. Nothing was changed. Upgrade them first, or leave the number of copies at 1.`,
  }),
  home_cut_off: define<None>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: () =>
      'This node has lost contact with the other nodes, so another one may serve this database now. A command that was sent before may or may not have been applied. Try again in a few seconds.',
  }),
  standby_silent: define<{ seconds: number }>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: ({ seconds }) =>
      `A standby of this database has not confirmed the writes within ${seconds} s, and Homeport cannot stop waiting for it, because the store does not answer. A command that was sent before may or may not have been applied. Try again in a few seconds.`,
  }),
  node_unreachable: define<{ node: string }>({
    status: 503,
    retry: 'later',
    text: ({ node }) =>
      `The node ${node} must handle this request, but does not answer. Nothing was changed. Try again when it is back; GET /v2/nodes shows all nodes.`,
  }),
  node_answer_lost: define<{ node: string }>({
    status: 502,
    text: ({ node }) =>
      `The connection to the node ${node} was lost while it handled this request. If the request was a change, it may have been made: check before you send it again.`,
  }),
  no_node_in_region: define<{ region: string; regions: readonly string[] }>({
    status: 400,
    text: ({ region, regions }) =>
      `No node serves the region ${JSON.stringify(region)}. Regions with a node: ${regions.length === 0 ? 'none' : regions.join(', ')}. Choose one of them, or start a node with --region ${region}.`,
  }),
  region_without_capacity: define<{ region: string }>({
    status: 503,
    retry: 'later',
    text: ({ region }) =>
      `The nodes of the region ${JSON.stringify(region)} take no new databases now: each is draining or does not answer. Nothing was created. Try again later; GET /v2/nodes shows all nodes.`,
  }),
  lookups_full: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'This node is already asking the other nodes about too many unknown tokens. Nothing was changed. Try again in a moment, or send the request to the node that serves the database.',
  }),
  home_not_ready: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'The node of this database does not serve it now: the node is starting, or the database was moved or deleted a moment ago. Nothing was done. Try again.',
  }),
  passing_full: define<{ most: number }>({
    status: 503,
    retry: 'later',
    text: ({ most }) =>
      `This node already forwards ${most} connections to other nodes, which is the limit. Connect to the node of the database, or try again later.`,
  }),
  forwarded_twice: define<{ node: string }>({
    status: 503,
    retry: 'later',
    text: ({ node }) =>
      `Another node forwarded this request to this node, which would forward it to ${node}: the nodes disagree about which of them handles it. Try again in a moment.`,
  }),
}
