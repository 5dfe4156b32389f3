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
      `The node ${name} does not run (it is ${state}), so it has nothing to give up. Start it first.`,
  }),
  node_running: define<{ name: string }>({
    status: 409,
    text: ({ name }) => `The node ${name} runs. Drain and stop it first.`,
  }),
  database_home_runs: define<{ databaseId: string; node: string }>({
    status: 409,
    text: ({ databaseId, node }) =>
      `The node ${node} serves the database ${databaseId} and runs. A recovery is for nodes that are gone, because it loses ` +
      'what was written after the backup: restore the backup instead, or stop that node first.',
  }),
  node_has_databases: define<{ name: string; databases: number }>({
    status: 409,
    text: ({ name, databases }) =>
      `The node ${name} is the home of ${databases} ${databases === 1 ? 'database' : 'databases'}, and their data is on its disk. Start it and move them away: homeport nodes drain ${name}. If it is gone for good with its disk: homeport nodes remove ${name} --lose-databases.`,
  }),
  node_has_standbys: define<{ name: string; databases: number }>({
    status: 409,
    text: ({ name, databases }) =>
      `Another node has a whole copy of ${databases} ${databases === 1 ? 'database' : 'databases'} of the node ${name}, which would be lost too. Start the node of the copy: it takes over if ${name} is dead. homeport nodes standbys lists the copies; one that is gone as well is ended with homeport nodes standby <database> --off.`,
  }),
  database_is_there: define<{ databaseId: string; node: string }>({
    status: 409,
    text: ({ databaseId, node }) =>
      `The node ${node} serves the database ${databaseId} already. Name another node: GET /v2/nodes lists them.`,
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
      'This node has lost the other nodes, so another one may serve this database now. A command that was sent before may or may not have been applied. Try again in a few seconds.',
  }),
  standby_silent: define<{ seconds: number }>({
    status: 503,
    resp: 'ERR',
    retry: 'later',
    text: ({ seconds }) =>
      `A standby of this database has not confirmed within ${seconds} s that it has what was written, and the store that would release the database from waiting does not answer. A command that was sent before may or may not have been applied. Try again in a few seconds.`,
  }),
  node_unreachable: define<{ node: string }>({
    status: 503,
    retry: 'later',
    text: ({ node }) =>
      `The node ${node} has to answer this request and does not answer now. Nothing was changed. Try again when it is back; GET /v2/nodes shows all nodes.`,
  }),
  node_answer_lost: define<{ node: string }>({
    status: 502,
    text: ({ node }) =>
      `The connection to the node ${node}, which has to answer this request, was lost. If the request was a change, it may have been made: look before you send it again.`,
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
      `The nodes of the region ${JSON.stringify(region)} take no new databases now: each is being drained or does not answer. Nothing was created. Try again later; GET /v2/nodes shows all nodes.`,
  }),
  lookups_full: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'Too many tokens that this node does not know are being looked up at the other nodes. Nothing was changed. Try again in a moment, or send the request to the node that serves the database.',
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
      `This node passes ${most} connections on to the nodes of their databases, and takes no more. Connect to the node of the database, or try again later.`,
  }),
  forwarded_twice: define<{ node: string }>({
    status: 503,
    retry: 'later',
    text: ({ node }) =>
      `Another node has passed this request on to this one, which would pass it on to ${node}. The nodes disagree about which of them answers; try again.`,
  }),
}
