import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { encodeCommand } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import {
  callsOf,
  FOREIGN_CALLS,
  NEWER_CALLS,
  PREPARATION,
  REFERENCE_CALLS,
  REFUSED_CALLS,
  SOCKET_CALLS,
} from '../testing/reference-commands.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

const LUA = "return redis.call('EXISTS', KEYS[1])"
const LIBRARY =
  "#!lua name=lib\nredis.register_function('fun', function(keys) return redis.call('DEL', keys[1]) end)\n" +
  "redis.register_function{function_name='fun_ro', callback=function(keys) return 1 end, flags={'no-writes'}}"

let rig: Rig

beforeEach(async () => {
  rig ??= await startRig()
})

/** Placeholders in the calls: a script, its hash and a library. */
const WORDS: Readonly<Record<string, string>> = {
  LUA,
  LIBRARY,
  SHA: createHash('sha1').update(LUA).digest('hex'),
}

/** A client that sends one command at a time and reads the bytes of its reply. */
class Caller {
  readonly raw: RawClient

  constructor(raw: RawClient) {
    this.raw = raw
  }

  static async open(): Promise<Caller> {
    return new Caller(await new RawClient(rig.port).login())
  }

  async call(words: readonly string[]): Promise<string> {
    const args = words.map((word) => WORDS[word] ?? word)
    this.raw.send(encodeCommand(args))
    while (!isWhole(this.raw.received)) await once(this.raw.socket, 'data')
    const reply = this.raw.received
    this.raw.received = ''
    return reply
  }
}

function isWhole(text: string): boolean {
  if (text === '') return false
  const framer = new ReplyFramer()
  framer.scan(Buffer.from(text, 'latin1'), 0, 1)
  return framer.completed === 1 && !framer.midReply
}

async function prepared(): Promise<Caller> {
  const caller = await Caller.open()
  await caller.call(['FLUSHALL'])
  for (const call of PREPARATION) expect(await caller.call(call.split(' ')), call).not.toMatch(/^-/)
  return caller
}

async function rest(body: unknown): Promise<{ result?: unknown; error?: string }> {
  const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
  const response = await fetch(rig.restUrl, { method: 'POST', body: JSON.stringify(body), headers })
  return (await response.json()) as { result?: unknown; error?: string }
}

describe('every command of the reference', () => {
  it.each(Object.entries(REFERENCE_CALLS))('%s: is served', async (_, text) => {
    const caller = await prepared()
    for (const words of callsOf(text)) {
      const reply = await caller.call(words)
      expect(reply, words.join(' ')).not.toMatch(/^-/)
    }
  })

  it('restores a dumped value', async () => {
    const caller = await prepared()
    const dumped = await caller.call(['DUMP', 'text'])
    const payload = Buffer.from(dumped.slice(dumped.indexOf('\r\n') + 2, -2), 'latin1')
    const head = `*4\r\n$7\r\nRESTORE\r\n$8\r\nrestored\r\n$1\r\n0\r\n$${payload.length}\r\n`
    caller.raw.send(Buffer.concat([Buffer.from(head), payload, Buffer.from('\r\n')]))
    await caller.raw.expect('+OK\r\n')
    expect(await caller.call(['GET', 'restored'])).toBe('$5\r\nhello\r\n')
  })

  it.each(Object.entries(SOCKET_CALLS))('%s: is served on a connection', async (_, text) => {
    const caller = await prepared()
    for (const words of callsOf(text)) {
      const reply = await caller.call(words)
      expect(reply, words.join(' ')).not.toMatch(/^-/)
    }
  })

  it.each(NEWER_CALLS)('that this engine lacks names the engines that have it: %s', async (engines, text) => {
    const caller = await prepared()
    for (const words of callsOf(text)) {
      const name = words[0] ?? ''
      const reply = await caller.call(words)
      if (!reply.startsWith('-')) continue
      const error = `ERR Command is not available: '${name}'. The engine of this database lacks it: ${engines}`
      expect(reply).toBe(`-${error}\r\n`)
      expect(await rest(words)).toEqual({ error })
    }
  })

  it.each(FOREIGN_CALLS.split(' '))(
    'that no engine has is unknown, and the error repeats the name as it was sent: %s',
    async (name) => {
      const sent = name.toLowerCase()
      const error = `ERR unknown command '${sent}', with args beginning with: 'a' `
      expect(await (await Caller.open()).call([sent, 'a'])).toBe(`-${error}\r\n`)
      expect(await rest([sent, 'a'])).toEqual({ error })
    },
  )

  it('that affects more than the database is refused', async () => {
    const caller = await Caller.open()
    for (const call of REFUSED_CALLS.split(' ')) {
      const words = call.split('|')
      const name =
        words.length === 1 || !/^(ACL|CLIENT|CONFIG|MEMORY|SCRIPT)$/.test(words[0] ?? '') ? words[0] : words.join(' ')
      expect(await caller.call([...words, 'a']), call).toBe(`-ERR Command is not available: '${name}'\r\n`)
    }
  })
})

describe('every command of the reference over REST', () => {
  it.each(Object.entries(REFERENCE_CALLS))('%s: is served', async (_, text) => {
    await prepared()
    for (const words of callsOf(text)) {
      const args = words.map((word) => WORDS[word] ?? word)
      expect(await rest(args), words.join(' ')).not.toHaveProperty('error')
    }
  })

  it.each(
    Object.values(SOCKET_CALLS)
      .flatMap((text) => callsOf(text).map((words) => words[0] ?? ''))
      // REST serves reads without BLOCK, and SELECT of the one database.
      .filter((name) => name !== 'XREAD' && name !== 'SELECT'),
  )('%s needs a connection and is refused', async (name) => {
    expect((await rest([name, 'a', 'b'])).error).toMatch(/is not allowed in REST or it has a special context path$/)
  })
})

describe('differences from a bare engine', () => {
  it.each([
    ['SELECT 0', '+OK\r\n'],
    ['SELECT 1', '-ERR DB index is out of range\r\n'],
    ['COPY text copy DB 1', '-ERR DB index is out of range\r\n'],
    ['COPY text text', ':0\r\n'],
    ['SCRIPT KILL', '-NOTBUSY No scripts in execution right now.\r\n'],
    ['FUNCTION KILL', '-NOTBUSY No scripts in execution right now.\r\n'],
    ['INFO nosuch', '$10\r\n# Nosuch\r\n\r\n'],
    ['CLIENT GETNAME', '$-1\r\n'],
    ['CLIENT CAPA redirect', '+OK\r\n'],
    ['READONLY', '-ERR This instance has cluster support disabled\r\n'],
    ['CLIENT NO-EVICT maybe', '-ERR syntax error\r\n'],
    ['CLIENT KILL nobody', '-ERR No such client\r\n'],
    ['CLIENT KILL ID 0', '-ERR client-id should be greater than 0\r\n'],
    ['CLIENT KILL TYPE odd', "-ERR Unknown client type 'odd'\r\n"],
    ['CLIENT KILL ID 99999999 SKIPME no', ':0\r\n'],
    ['CLIENT LIST ID x', '-ERR Invalid client ID\r\n'],
    ['CLIENT LIST TYPE replica', '$0\r\n\r\n'],
    ['CLIENT NOSUCH', "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n"],
    ['HELLO 4', '-NOPROTO unsupported protocol version\r\n'],
    ['HELLO x', '-ERR Protocol version is not an integer or out of range\r\n'],
    ['HELLO 2 NOSUCH', "-ERR Syntax error in HELLO option 'NOSUCH'\r\n"],
  ])('%s', async (call, reply) => {
    const caller = await prepared()
    expect(await caller.call(call.split(' '))).toBe(reply)
  })

  it('the error for an unknown command repeats as much of it as an engine does', async () => {
    const caller = await Caller.open()
    const args = ['a'.repeat(100), 'b'.repeat(100), 'c']
    const shown = `'${'a'.repeat(100)}' '${'b'.repeat(25)}' `
    expect(await caller.call(['x'.repeat(200), ...args])).toBe(
      `-ERR unknown command '${'x'.repeat(128)}', with args beginning with: ${shown}\r\n`,
    )
  })

  it('FUNCTION STATS shows no running script', async () => {
    expect(await (await prepared()).call(['FUNCTION', 'STATS'])).toMatch(/^\*4\r\n\$14\r\nrunning_script\r\n\$-1\r\n/)
  })

  it.each(['server', 'clients', 'memory', 'stats', 'cluster', 'keyspace', 'default', 'all'])(
    'INFO has the section %s',
    async (section) => {
      const reply = await (await prepared()).call(['INFO', section])
      expect(reply).toMatch(
        section === 'default' || section === 'all'
          ? /# Server\r\n[\s\S]*# Keyspace\r\n/
          : new RegExp(`# ${section}`, 'i'),
      )
      expect(reply).not.toMatch(/executable|config_file|process_id/)
    },
  )
})
