import { execFile } from 'node:child_process'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { engineTool } from './testing/engine.js'
import { run } from './testing/limited.js'
import { CREDENTIALS, type Rig, startRig } from './testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

beforeEach(async () => {
  await run(rig, 'FLUSHALL')
})

/** Runs redis-cli with `input` on its standard input, and resolves to its output. */
function redisCli(args: readonly string[], input = ''): Promise<string> {
  const login = ['-p', String(rig.port), '-a', CREDENTIALS.password, '--no-auth-warning']
  return new Promise((resolve, reject) => {
    const child = execFile(engineTool('cli'), [...login, ...args], (error, printed) =>
      error ? reject(error) : resolve(printed),
    )
    child.stdin?.end(input)
  })
}

const set = (key: string, value: string): string =>
  `*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${value.length}\r\n${value}\r\n`

describe('the modes of redis-cli', () => {
  it('--pipe loads many commands at once', async () => {
    const commands = Array.from({ length: 10_000 }, (_, i) => set(`key-${i}`, 'x'))
    expect(await redisCli(['--pipe'], commands.join(''))).toMatch(/errors: 0, replies: 10000/)
    expect((await run(rig, 'DBSIZE')).body).toEqual({ result: 10_000 })
  })

  it('--scan, --bigkeys and --memkeys read all keys', async () => {
    await redisCli(['--pipe'], set('small', 'x') + set('large', 'x'.repeat(1_000)) + set('other', 'x'))
    expect((await redisCli(['--scan', '--pattern', '*l*'])).split('\n').sort()).toEqual(['', 'large', 'small'])
    expect(await redisCli(['--bigkeys'])).toMatch(/Biggest string found\s+\S+large\S+ has 1000 bytes/)
    expect(await redisCli(['--memkeys'])).toMatch(/Biggest string found\s+\S+large\S+ has \d+ bytes/)
  })

  it('-3 speaks RESP3, also in transactions with commands that the gateway answers', async () => {
    const script = 'HSET h a 1\nHGETALL h\nMULTI\nCLIENT SETNAME me\nINCR n\nINFO cluster\nEXEC\nCLIENT GETNAME\n'
    const printed = await redisCli(['-3'], script)
    expect(printed).toMatch(/^1\na 1\nOK\nQUEUED\nQUEUED\nQUEUED\n?OK\n1\n# Cluster\r?\ncluster_enabled:0\r?\n\s*me\n$/)
  })

  it('reports options that are not available', async () => {
    expect(await redisCli(['DEBUG', 'SLEEP', '0'])).toContain("ERR Command is not available: 'DEBUG'")
    await expect(redisCli(['--rdb', '/nowhere/dump.rdb'])).rejects.toThrow(/Command is not available: 'SYNC'/)
  })
})
