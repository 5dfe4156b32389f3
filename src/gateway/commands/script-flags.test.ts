import { createHash } from 'node:crypto'
import { Redis } from '@upstash/redis'
import { expect, it } from 'vitest'
import { encodeCommand } from '../resp/encode.js'
import { CREDENTIALS, RawClient, startRig } from '../testing/rig.js'
import { forEngine } from './script-flags.js'

const digestOf = (script: string): string => createHash('sha1').update(script).digest('hex')
const words = (args: readonly (string | Buffer)[] | undefined) => args?.map(String)

it('the gateway removes the flag from the first line and nothing else', () => {
  const own = (script: string) => words(forEngine('EVAL', ['EVAL', script, '0']))?.[1]
  expect(own('#!lua flags=allow-key-locking\nreturn 1')).toBe('#!lua\nreturn 1')
  expect(own('#!lua flags=no-writes,allow-key-locking\nreturn "ä"')).toBe('#!lua flags=no-writes\nreturn "ä"')
  expect(own('#!lua flags=no-writes\n-- allow-key-locking')).toBeUndefined()
  expect(own('return "#!lua flags=allow-key-locking\n"')).toBeUndefined()
  expect(forEngine('SET', ['SET', 'k', '#!lua flags=allow-key-locking\n'])).toBeUndefined()
})

it('the gateway finds a script by the digest of its original text, on both protocols, also in a transaction', async () => {
  const script = "#!lua flags=allow-key-locking\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])"
  const rig = await startRig()
  const redis = new Redis({ url: rig.restUrl, token: CREDENTIALS.token })
  await expect(redis.evalsha(digestOf(script), ['n'], [1])).rejects.toThrow('NOSCRIPT')
  expect(await redis.eval(script, ['n'], [2])).toBe(2)
  expect(await redis.evalsha(digestOf(script), ['n'], [3])).toBe(5)
  expect(await redis.multi().eval(script, ['n'], [1]).evalsha(digestOf(script), ['n'], [1]).exec()).toEqual([6, 7])

  const client = await new RawClient(rig.port).login()
  const call = (args: string[], reply: string) => client.send(encodeCommand(args)).expect(reply)
  await call(['EVALSHA', digestOf(script).toUpperCase(), '1', 'n', '1'], ':8\r\n')
  await call(['EVAL', script, '1', 'n', '1'], ':9\r\n')
  const loaded = digestOf(script.replace(' flags=allow-key-locking', ''))
  await call(['SCRIPT', 'LOAD', script], `$40\r\n${loaded}\r\n`)
  await call(['EVALSHA', loaded, '1', 'n', '1'], ':10\r\n')
  await call(['MULTI'], '+OK\r\n')
  await call(['EVALSHA', digestOf(script), '1', 'n', '1'], '+QUEUED\r\n')
  await call(['EXEC'], '*1\r\n:11\r\n')
  const large = 'x'.repeat(2 * 1024 * 1024)
  await call(['EVAL', '#!lua flags=allow-key-locking\nreturn #ARGV[1]', '0', large], `:${large.length}\r\n`)
})
