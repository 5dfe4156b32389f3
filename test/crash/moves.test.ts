import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { pause, systemClock } from '../../src/base/index.js'
import { randomFrom } from '../../src/base/testing/random.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseMove } from '../../src/contract/server/moves.js'
import { type Answer, atCleanup, call, enginesIn, sampled, waitFor } from '../support/index.js'
import { HeldMove } from './held-move.js'
import { isRunning, NodeScene, type SceneNode } from './nodes.js'
import { listeningPorts } from './senders.js'

/**
 * Kills one or both nodes of a move at every step of it. Afterwards the database has one home, with every acknowledged write
 * and its backup, and the other node has no copy, engine or port of it. A lock in PostgreSQL holds a step: the transaction
 * that stores it has not committed when the node dies. `npm run crash -- --only moves` plays all steps several times.
 */

type Victim = 'from' | 'to'

interface Step {
  /** The state that the move is about to have, or has when it is not held. */
  readonly state: DatabaseMove['state']
  readonly when: 'before its commit' | 'after its commit'
  readonly kill: readonly Victim[]
  /** The node that is restarted before, so that the move fails. */
  readonly restarted?: Victim
}

const STEPS: readonly Step[] = [
  { state: 'copying', when: 'before its commit', kill: ['from'] },
  { state: 'copying', when: 'before its commit', kill: ['to'] },
  { state: 'copying', when: 'after its commit', kill: ['from'] },
  { state: 'copying', when: 'after its commit', kill: ['to'] },
  { state: 'switched', when: 'before its commit', kill: ['from'] },
  { state: 'switched', when: 'before its commit', kill: ['to'] },
  { state: 'switched', when: 'before its commit', kill: ['from', 'to'] },
  { state: 'switched', when: 'after its commit', kill: ['from'] },
  { state: 'switched', when: 'after its commit', kill: ['to'] },
  { state: 'switched', when: 'after its commit', kill: ['from', 'to'] },
  { state: 'done', when: 'before its commit', kill: ['from'] },
  { state: 'done', when: 'before its commit', kill: ['to'] },
  { state: 'aborted', when: 'before its commit', kill: ['from'], restarted: 'to' },
  { state: 'failed', when: 'before its commit', kill: ['to'], restarted: 'to' },
]

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? 20_261_129)
/** `npm test` plays two of the 14 steps. */
const PLAYED = CYCLES > 1 ? STEPS : sampled(STEPS, 7)
const BETWEEN_MS = 5
/** The longest time that a copy runs before a node is killed. */
const COPY_MS = 400
const VALUES = 30
const VALUE = 'x'.repeat(100_000)

type Made = DatabaseRecord & Record<'rest_token', string>

/** Writes numbers through both nodes until it is stopped. */
class Writer {
  readonly answered: number[] = []
  readonly #writing: Promise<unknown>
  #next = 0
  #isOver = false

  constructor(nodes: readonly SceneNode[], made: Made) {
    this.#writing = Promise.all(nodes.map((node) => this.#write(node, made)))
  }

  async #write(node: SceneNode, made: Made): Promise<void> {
    while (!this.#isOver) {
      const number = this.#next++
      const answer = await rest(node, made, ['RPUSH', 'numbers', `${number}`]).catch(() => undefined)
      if (answer?.status === 200) this.answered.push(number)
      await pause(systemClock, BETWEEN_MS)
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#writing
  }
}

const rest = ({ homeport }: SceneNode, { rest_token }: Made, command: readonly string[]): Promise<Answer> =>
  call(`${homeport.restUrl}/`, {
    method: 'POST',
    json: command,
    signal: AbortSignal.timeout(10_000),
    headers: { authorization: `Bearer ${rest_token}` },
  })

const filesOf = (node: SceneNode, folder: 'databases' | 'backups', { database_id }: Made): string =>
  join(node.place.dataDir, folder, database_id)

const nameOf = ({ state, when, kill, restarted }: Step): string =>
  `${kill.join(' and ')} killed when the move is "${state}", ${when}${restarted ? ', after a restart of the other' : ''}`

/** The listening ports of both nodes: those of relays to engines of the other node would be more. */
const portsOf = (nodes: readonly SceneNode[]): number =>
  nodes.reduce((sum, { homeport }) => sum + listeningPorts(homeport.pid).length, 0)

async function play(scene: NodeScene, held: HeldMove, made: Made, step: Step, random: () => number): Promise<string> {
  const { nodes } = scene
  const home = await held.homeOf(made.database_id)
  const from = nodes.find(({ name }) => name === home) as SceneNode
  const to = nodes.find(({ name }) => name !== home) as SceneNode
  const roles = { from, to }
  const writer = new Writer(nodes, made)
  await waitFor(() => writer.answered.length > 10, { what: 'writes' })
  const ports = portsOf(nodes)
  const isHeld = step.when === 'before its commit'
  if (isHeld || step.state === 'switched') await held.hold(step.state)
  const asked = await from.homeport.api('POST', `/v2/nodes/${to.name}/databases`, { database_id: made.database_id })
  expect(asked.status).toBe(200)
  const stateOf = () => held.stateOf(made.database_id)
  if (step.restarted) {
    const node = roles[step.restarted]
    await waitFor(async () => (await stateOf()) === 'copying', { what: 'the copy to begin', everyMs: 1 })
    await node.homeport.kill('SIGKILL')
    node.homeport = await scene.restart(node)
  }
  if (isHeld || step.state === 'switched') await held.reached()
  else {
    await waitFor(async () => (await stateOf()) === step.state, { what: `the state ${step.state}`, everyMs: 1 })
    await pause(systemClock, random() * COPY_MS)
  }
  if (!isHeld && step.state === 'switched') {
    // Freeze the next home, so that it does not learn of the commit before the kill.
    process.kill(to.homeport.pid, 'SIGSTOP')
    await held.release()
    await waitFor(async () => (await stateOf()) === 'switched', { what: 'the commit', everyMs: 1 })
  }
  for (const victim of step.kill) process.kill(roles[victim].homeport.pid, 'SIGKILL')
  if (!step.kill.includes('to')) process.kill(to.homeport.pid, 'SIGCONT')
  await held.release()
  for (const victim of step.kill) {
    await waitFor(() => !isRunning(roles[victim].homeport.pid), { what: 'the node to be gone' })
  }
  const ended = async () => {
    // On a busy machine a node that stood still may have been declared dead as well.
    for (const node of nodes) if (!isRunning(node.homeport.pid)) node.homeport = await scene.restart(node)
    const now = await stateOf()
    return now === 'done' || now === 'failed' ? now : undefined
  }
  const state = await waitFor(ended, { what: 'the move to end' }).catch(async (error: unknown) => {
    throw new Error(`it is ${await stateOf()}`, { cause: error })
  })
  const answered = writer.answered.length
  await waitFor(() => writer.answered.length > answered + 10, { what: 'writes afterwards' })
  await writer.stop()

  const [now, other] = state === 'done' ? [to, from] : [from, to]
  expect(await held.homeOf(made.database_id)).toBe(now.name)
  for (const node of nodes) {
    const { result } = (await rest(node, made, ['LRANGE', 'numbers', '0', '-1'])).body as { result: string[] }
    const kept = new Set(result.map(Number))
    expect(writer.answered.filter((number) => !kept.has(number))).toEqual([])
    expect((await rest(node, made, ['STRLEN', `value:${VALUES - 1}`])).body).toEqual({ result: VALUE.length })
  }
  expect((await rest(now, made, ['DEL', 'numbers'])).status).toBe(200)
  for (const folder of ['databases', 'backups'] as const) {
    expect({
      folder,
      at: nodes.filter((node) => isThere(filesOf(node, folder, made))).map(({ name }) => name),
    }).toEqual({ folder, at: [now.name] })
  }
  expect([now, other].map((node) => enginesIn(filesOf(node, 'databases', made)).length)).toEqual([1, 0])
  await waitFor(() => portsOf(nodes) === ports, { what: 'as many ports as before' }).catch((error: unknown) => {
    throw new Error(`${ports} ports before, ${portsOf(nodes)} now`, { cause: error })
  })
  const { body } = await other.homeport.api('GET', `/v2/redis/database/${made.database_id}`)
  expect(body).toMatchObject({ modifying_state: '', state: 'active' })
  return `${nameOf(step)}: ${state}, ${writer.answered.length} writes`
}

const isThere = (folder: string): boolean => existsSync(folder) && readdirSync(folder).length > 0

it('a move leaves one home with all acknowledged writes, whichever node is killed at any step', {
  timeout: 120_000 + CYCLES * PLAYED.length * 60_000,
}, async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const random = randomFrom(SEED)
  const scene = await NodeScene.start({ nodes: 2, random, readyEveryMs: 1_000, onDisturbance: () => undefined })
  atCleanup(() => scene.stop())
  const [first] = scene.nodes as [SceneNode]
  const asked = { database_name: 'moved', platform: 'aws', primary_region: 'us-east-1', plan: 'payg' }
  const made = (await first.homeport.api('POST', '/v2/redis/database', asked)).body as Made
  for (let number = 0; number < VALUES; number++) await rest(first, made, ['SET', `value:${number}`, VALUE])
  const backup = await first.homeport.api('POST', `/v2/redis/create-backup/${made.database_id}`, { name: 'kept' })
  expect(backup.status).toBe(200)
  const held = await HeldMove.on(scene.storeUrl)
  atCleanup(() => held.end())
  const reported: string[] = []
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    for (const step of PLAYED) {
      reported.push(
        await play(scene, held, made, step, random).catch((error: unknown) => {
          throw new Error(`${nameOf(step)}; before: ${reported.join('; ')}`, { cause: error })
        }),
      )
    }
  }
  console.log(`moves: ${reported.join('; ')}`)
})
