import { commandClock, pause } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { type DatabaseMove, listDatabaseMoves, moveDatabaseToNode } from '../../contract/server/moves.js'
import { type ClusterNode, drainNode, listNodes, removeNode, resumeNode } from '../../contract/server/nodes.js'
import { MOVE_WORDS, NODE_WORDS } from '../../contract/words/states.js'
import { ANY_DATABASE, anyDatabaseId } from '../db/find.js'
import { failedWith } from '../errors.js'
import type { Io } from '../io.js'
import { group, remote, type Session } from '../remote/remote.js'
import { bytes, counted, momentOfSeconds } from '../terminal/figures.js'
import { renderTable, stateColumn } from '../terminal/table.js'
import { standbyCommand, standbysCommand } from './standby.js'

const NODE = ['<node>', 'name of the node'] as const
const LOOK_EVERY_MS = 500
/** A drain without progress for this long is stuck: partitions wait 60 s for requests, databases retry after 30 s. */
const STUCK_AFTER_MS = 90_000
const IN_PROGRESS: ReadonlySet<DatabaseMove['state']> = new Set(['asked', 'copying'])

const table = (io: Io, rows: readonly ClusterNode[]): string =>
  renderTable(
    io,
    [
      { title: 'NODE', value: (one) => (one.answering ? `${one.name} *` : one.name) },
      stateColumn((one: ClusterNode) => NODE_WORDS[one.state]),
      { title: 'REGION', value: (one) => one.region ?? 'all' },
      { title: 'DATABASES', value: (one) => String(one.databases) },
      { title: 'MEMORY', value: ({ engine_memory }) => (engine_memory === undefined ? '' : bytes(engine_memory)) },
      { title: 'PARTITIONS', value: (one) => String(one.partitions) },
      { title: 'PROBLEMS', value: ({ problems }) => (problems === undefined ? '' : String(problems)) },
      { title: 'LEADER', value: (one) => (one.leader ? 'yes' : '') },
      { isExtra: true, title: 'VERSION', value: (one) => one.version },
      { isExtra: true, title: 'ADDRESS', value: (one) => one.address },
      { isExtra: true, title: 'STARTED', value: (one) => momentOfSeconds(one.start_time) },
    ],
    rows,
  )

const listCommand = remote({
  name: 'list',
  summary: 'list the nodes of the cluster; * marks the node that answers',
  examples: ['homeport nodes list'],
  run: async ({ api, io, show, say }) => {
    const nodes = await api.call(listNodes)
    show(nodes, () => (nodes.length === 0 ? '' : table(io, nodes)))
    if (nodes.length === 0) say('This server is alone. docs/nodes.md describes how several nodes share a store.')
  },
})

const drainCommand = remote<{ readonly wait?: true }, [string]>({
  name: 'drain',
  summary: 'move the work and the databases of a node to the others',
  args: [NODE],
  flags: (command) => command.option('--wait', 'return when all has moved'),
  examples: ['homeport nodes drain b --wait'],
  run: async (session, { wait }, name) => {
    await session.api.call(drainNode, { params: { name } })
    if (wait) await whenEmpty(session, name)
    session.say(wait ? `${name} has no work and no databases any more. It can be stopped.` : `${name} is draining.`)
  },
})

/**
 * Resolves when a draining node owns no partition and serves no database.
 * @throws HomeportError `cli_failed` when the node was resumed, or when it makes no progress any more.
 */
async function whenEmpty({ api }: Session, name: string): Promise<void> {
  let [left, sinceMs] = ['', commandClock.now()]
  for (;;) {
    const node = (await api.call(listNodes)).find((one) => one.name === name)
    if (node?.state === 'live') {
      throw failedWith(`${name} no longer drains: it was resumed meanwhile.`)
    }
    if (!node || (node.partitions === 0 && node.databases === 0)) return
    const found = `${counted(node.partitions, 'partition')} and ${counted(node.databases, 'database')}`
    if (found !== left || (await isLeft(api, name))) [left, sinceMs] = [found, commandClock.now()]
    if (commandClock.now() - sinceMs > STUCK_AFTER_MS) throw stuck(name, left)
    await pause(commandClock, LOOK_EVERY_MS)
  }
}

/** Whether a database moves away from a node. */
const isLeft = async (api: Session['api'], name: string): Promise<boolean> =>
  (await api.call(listDatabaseMoves)).some(({ from, state }) => from === name && IN_PROGRESS.has(state))

const stuck = (name: string, left: string): HomeportError =>
  failedWith(
    `${left} stay at ${name}, which continues to drain. Probably no other running node of their region has capacity for them: start one. The log of ${name} says more (event database_move_failed). Databases that stay do not answer while ${name} is stopped.`,
  )

const resumeCommand = remote<object, [string]>({
  name: 'resume',
  summary: 'let a drained node take work again',
  args: [NODE],
  examples: ['homeport nodes resume b'],
  run: async ({ api, say }, _, name) => {
    await api.call(resumeNode, { params: { name } })
    say(`${name} takes work again.`)
  },
})

const moveCommand = remote<{ readonly to: string; readonly wait?: false }, [string]>({
  name: 'move',
  summary: 'move a database to another node, while it serves',
  args: [['<database>', ANY_DATABASE]],
  flags: (command) =>
    command
      .requiredOption('--to <node>', 'name of the node')
      .option('--no-wait', 'return at once; "homeport nodes moves" shows the progress'),
  examples: ['homeport nodes move orders --to c'],
  run: async (session, { to, wait }, database) => {
    const database_id = await anyDatabaseId(session.api, database)
    await session.api.call(moveDatabaseToNode, { params: { name: to }, body: { database_id } })
    if (wait === false) return session.say(`${database} moves to ${to}.`)
    const { from } = await whenMoved(session, database_id)
    session.say(`${database} has moved to ${to}. ${from} keeps its old files in quarantine.`)
  },
})

/** Resolves when the newest move of a database is over. */
async function whenMoved({ api }: Session, databaseId: string): Promise<DatabaseMove> {
  for (;;) {
    const move = (await api.call(listDatabaseMoves)).find((one) => one.database_id === databaseId)
    if (!move) throw failedWith(`${databaseId} was deleted.`)
    if (move.state === 'done' || move.state === 'switched') return move
    if (move.state === 'failed' || move.state === 'aborted') {
      throw failedWith(`${databaseId} stays at ${move.from}: ${move.problem}.`)
    }
    await pause(commandClock, LOOK_EVERY_MS)
  }
}

const movesCommand = remote({
  name: 'moves',
  summary: 'list moves of databases to other nodes',
  examples: ['homeport nodes moves'],
  run: async ({ api, io, show, say }) => {
    const moves = await api.call(listDatabaseMoves)
    show(moves, () => (moves.length === 0 ? '' : moveTable(io, moves)))
    if (moves.length === 0) say('No database moves.')
  },
})

const moveTable = (io: Io, rows: readonly DatabaseMove[]): string =>
  renderTable(
    io,
    [
      { title: 'DATABASE', value: (one) => one.database_id },
      { title: 'NAME', value: (one) => one.database_name },
      { title: 'FROM', value: (one) => one.from },
      { title: 'TO', value: (one) => one.to },
      stateColumn((one: DatabaseMove) => MOVE_WORDS[one.state]),
      { title: 'REQUESTED', value: (one) => momentOfSeconds(one.start_time) },
      { title: 'PROBLEM', value: (one) => one.problem },
    ],
    rows,
  )

const removeCommand = remote<{ readonly loseDatabases?: true }, [string]>({
  name: 'remove',
  summary: 'forget a node that was stopped or is dead',
  args: [NODE],
  flags: (command) =>
    command.option(
      '--lose-databases',
      'also remove a node that is the home of databases and is gone for good with its disk',
    ),
  isDestructive: true,
  examples: ['homeport nodes remove b', 'homeport nodes remove b --lose-databases'],
  run: async ({ api, say, confirm }, { loseDatabases = false }, name) => {
    if (loseDatabases) await confirm(`Remove ${name}, and give up the data of its databases?`, name)
    await api.call(removeNode, { params: { name }, query: loseDatabases ? { lose_databases: true } : {} })
    say(`${name} is removed.`)
  },
})

/** `homeport nodes`: the nodes of a cluster. */
export const nodesCommand = group('nodes', 'nodes of a cluster (operator)', [
  listCommand,
  drainCommand,
  resumeCommand,
  moveCommand,
  movesCommand,
  standbyCommand,
  standbysCommand,
  removeCommand,
])
