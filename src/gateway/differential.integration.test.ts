import { createConnection, type NetConnectOpts, type Socket } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../test/support/index.js'
import { randomFrom } from '../base/testing/random.js'
import type { Administration } from './deps.js'
import { encodeCommand } from './resp/encode.js'
import { ENGINE_PASSWORDS, startEngine, type TestEngine } from './testing/engine.js'
import { pick, type Random, randomCommand } from './testing/random-commands.js'
import { CREDENTIALS, type Rig, startRig } from './testing/rig.js'

/** The same seed in every run, unless an environment variable sets another. */
const SEED = Number(process.env.HOMEPORT_DIFFERENTIAL_SEED ?? 20_261_121)
const SEQUENCES = Number(process.env.HOMEPORT_DIFFERENTIAL_SEQUENCES ?? 24)
const STEPS = 120

let rig: Rig
let engine: TestEngine

beforeAll(async () => {
  const everyLimit = { maxEntryBytes: 2 ** 27, maxCommandsPerSecond: 10 ** 9, maxRequestsPerMonth: 10 ** 9 }
  const limits = { ...everyLimit, scriptTimeoutMs: 5_000, scriptMsPerMinute: 60_000 }
  rig = await startRig(limits, undefined, undefined, [], { administration: WHO_AM_I })
  engine = await startEngine('--user owner on >owner-secret ~* &* +@all'.split(' '))
  const owner = new Recorder({ path: engine.socketPath })
  owner.socket.write(encodeCommand(['AUTH', 'owner', 'owner-secret']))
  owner.socket.write(encodeCommand(['ACL', 'SETUSER', 'default', ...LEFT_TO_THE_GATEWAY]))
  await owner.until('allowed')
  owner.socket.destroy()
})

/** Commands that no user may send to the bare engine, because the gateway answers them. */
const LEFT_TO_THE_GATEWAY = ['+client|kill', '+client|list', '+client|no-evict']

/** Answers the only command about the database that a bare engine answers in the same way. */
const WHO_AM_I: Administration = {
  run: async ({ user }) => ({ kind: 'text', text: user }),
  refusalToAsk: () => undefined,
}

/** Commands that the gateway answers or changes, with the same reply as an engine. */
const OWN_COMMANDS = [
  'SELECT 0',
  'SELECT 9',
  'SELECT x',
  'CLIENT GETNAME',
  'CLIENT SETNAME me',
  'CLIENT SETNAME you',
  'SELECT 00',
  'SELECT 2147483648',
  'CLIENT KILL USER nosuch',
  'CLIENT KILL ID 01',
  'CLIENT KILL ID -1',
  'CLIENT KILL TYPE replica',
  'CLIENT KILL SKIPME maybe ID 1',
  'CLIENT LIST ID 0 -1',
  'CLIENT LIST ID 1.0',
  'CLIENT LIST TYPE nosuch',
  'CLIENT NO-EVICT on',
  'CLIENT NO-EVICT x',
  'ACL WHOAMI',
]
/** The same with a wrong number of arguments. */
const MISUSED_COMMANDS = ['SELECT', 'CLIENT GETNAME x', 'CLIENT SETNAME', 'CLIENT KILL', 'ACL WHOAMI x', 'ACL SETUSER']

const ownCommand = (random: Random): readonly string[] =>
  pick(random, random() < 0.06 ? MISUSED_COMMANDS : OWN_COMMANDS).split(' ')

/** One client that keeps everything it receives. */
class Recorder {
  readonly socket: Socket
  readonly #chunks: Buffer[] = []
  #tail = ''

  constructor(target: NetConnectOpts) {
    this.socket = createConnection(target)
    this.socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#tail = (this.#tail + chunk.subarray(-64).toString('latin1')).slice(-64)
    })
    atCleanup(() => void this.socket.destroy())
  }

  /** Everything received up to the reply to a last ECHO. */
  async until(word: string): Promise<Buffer> {
    this.socket.write(encodeCommand(['ECHO', word]))
    const end = `$${word.length}\r\n${word}\r\n`
    await waitFor(() => this.#tail.endsWith(end), { what: `the echo of ${word}` })
    this.#tail = ''
    return Buffer.concat(this.#chunks.splice(0))
  }
}

type Step = readonly (readonly (Buffer | string)[])[]

function transaction(random: Random): Step {
  const inner = Array.from({ length: Math.floor(random() * 6) }, () =>
    random() < 0.25 ? ownCommand(random) : randomCommand(random),
  )
  const before = random() < 0.3 ? [['WATCH', 'key:1'], ...(random() < 0.5 ? [['SET', 'key:1', 'x']] : [])] : []
  const nested = random() < 0.1 ? [pick(random, [['MULTI'], ['WATCH', 'key:2']]), randomCommand(random)] : []
  return [...before, ['MULTI'], ...inner, ...nested, [pick(random, ['EXEC', 'EXEC', 'EXEC', 'DISCARD'])], ['UNWATCH']]
}

/** Subscriptions end at once, or after some commands, most of which an engine refuses meanwhile in RESP2. */
function subscription(random: Random): Step {
  const channel = `news-${Math.floor(random() * 3)}`
  const between = random() < 0.5 ? [randomStep(random), randomStep(random)].flat() : []
  return [
    ['SUBSCRIBE', channel, 'more'],
    ['PSUBSCRIBE', 'n*'],
    ['PING'],
    ...between,
    ['UNSUBSCRIBE', channel, 'more'],
    ['PUNSUBSCRIBE'],
  ]
}

function randomStep(random: Random): Step {
  const share = random()
  if (share < 0.15) return transaction(random)
  if (share > 0.25) return [randomCommand(random)]
  return share > 0.2 ? [ownCommand(random)] : subscription(random)
}

/** All commands as one text, and the positions where the writer pauses. */
function sequenceOf(random: Random): readonly Buffer[] {
  const steps = Array.from({ length: STEPS }, () => randomStep(random))
  const commands = steps.flat().map((command) => encodeCommand(command))
  const bytes = Buffer.concat([Buffer.from('PING inline\r\n'), ...commands])
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = random() < 0.5 ? 1 + Math.floor(random() * 200) : 1 + Math.floor(random() * 20_000)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

async function send({ socket }: Recorder, pieces: readonly Buffer[], random: Random): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece)
    if (random() < 0.3) await new Promise((resolve) => setImmediate(resolve))
  }
}

async function loggedIn(target: NetConnectOpts, password: string, protocol: 2 | 3): Promise<Recorder> {
  const recorder = new Recorder(target)
  recorder.socket.write(encodeCommand(['HELLO', String(protocol), 'AUTH', 'default', password]))
  recorder.socket.write(encodeCommand(['FLUSHALL']))
  await recorder.until('ready')
  return recorder
}

async function compare(seed: number, protocol: 2 | 3): Promise<void> {
  const pieces = sequenceOf(randomFrom(seed))
  const [through, direct] = await Promise.all([
    loggedIn({ port: rig.port, host: '127.0.0.1' }, CREDENTIALS.password, protocol),
    loggedIn({ path: engine.socketPath }, ENGINE_PASSWORDS.default, protocol),
  ])
  await Promise.all([send(through, pieces, randomFrom(seed)), send(direct, pieces, randomFrom(seed + 1))])
  const [ours, theirs] = await Promise.all([through.until('done'), direct.until('done')])
  through.socket.destroy()
  direct.socket.destroy()
  if (!ours.equals(theirs)) expect(around(ours, theirs)).toEqual(around(theirs, ours))
}

/** The first difference between two texts, shortened. */
function around(text: Buffer, other: Buffer): string {
  let at = 0
  while (at < text.length && text[at] === other[at]) at++
  return `at ${at}: ${text.toString('latin1', Math.max(0, at - 200), at + 200)}`
}

describe('a client of the gateway and one of a bare engine', () => {
  it.each([2, 3] as const)(
    'get the same bytes for the same commands with RESP%i',
    async (protocol) => {
      for (let i = 0; i < SEQUENCES; i++) await compare(SEED + i, protocol)
    },
    60_000,
  )
})
