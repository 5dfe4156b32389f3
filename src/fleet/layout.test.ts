import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { type Clock, systemClock } from '../base/index.js'
import { memberPaths, nearSocketDir, prepareLayout } from './layout.js'
import { endEngines, isEngineCommand } from './processes.js'

afterEach(() => void vi.unstubAllEnvs())

describe('the directories of the fleet', () => {
  test('are private and have one name, whatever path leads to the data directory', async () => {
    const dataDir = tempDir()
    const link = join(tempDir(), 'link')
    symlinkSync(dataDir, link)
    const layout = await prepareLayout(link)
    expect(layout).toEqual(await prepareLayout(dataDir))
    expect(layout.databasesDir).toBe(join(realpathSync(dataDir), 'databases'))
    for (const directory of [layout.databasesDir, layout.socketDir])
      expect(statSync(directory).mode & 0o777).toBe(0o700)
  })

  test('keep socket paths short however long the name of the data directory', async () => {
    expect(nearSocketDir('/srv/homeport')).toBe('/srv/homeport/run')
    const longest = `/srv/${'x'.repeat(100 - '/srv//run/0123456789abcdef.sock'.length)}`
    expect(nearSocketDir(`${longest}x`)).toBeUndefined()
    const layout = { databasesDir: '/d', quarantineDir: '/q', socketDir: nearSocketDir(longest) ?? '' }
    expect(layout.socketDir).toBe(`${longest}/run`)
    expect(memberPaths(layout, 'db', 'us-east-1').socket).toHaveLength(100)
  })

  test.each(['/nowhere/of/anybody', '/proc', `/dev/shm/${'x'.repeat(90)}`])(
    'are elsewhere for a long name, also when TMPDIR is %s',
    async (folder) => {
      const dataDir = join(tempDir(), 'x'.repeat(100))
      mkdirSync(dataDir)
      vi.stubEnv('TMPDIR', folder)
      const { socketDir } = await prepareLayout(dataDir)
      onTestFinished(() => rmSync(socketDir, { recursive: true }))
      expect(socketDir).toMatch(/^\/tmp\/homeport-\d+-[0-9a-f]{12}$/)
      expect((await prepareLayout(dataDir)).socketDir).toBe(socketDir)
      expect(statSync(socketDir).mode & 0o777).toBe(0o700)
    },
  )

  test('are refused where somebody else could write', async () => {
    const dataDir = tempDir()
    mkdirSync(join(dataDir, 'run'))
    chmodSync(join(dataDir, 'run'), 0o777)
    await expect(prepareLayout(dataDir)).rejects.toThrow(/mode 0700/)
  })

  test('are refused where a link leads elsewhere', async () => {
    const dataDir = tempDir()
    symlinkSync(tempDir(), join(dataDir, 'run'))
    await expect(prepareLayout(dataDir)).rejects.toThrow(/mode 0700/)
  })
})

describe('the search for engines', () => {
  const isEngine = (line: string) => isEngineCommand(line, '/srv/my data/databases', '/opt/special')

  test.each([
    ['/usr/bin/redis-server /srv/my data/databases/db/us-east-1/engine.conf', true],
    ['/usr/bin/setpriv --pdeathsig TERM -- /usr/bin/valkey-server /srv/my data/databases/db/r/engine.conf', true],
    ['/opt/special /srv/my data/databases/db/us-east-1/engine.conf', true],
    ['vim /srv/my data/databases/db/us-east-1/engine.conf', false],
    ['/usr/bin/redis-server /srv/my data2/databases/db/us-east-1/engine.conf', false],
    ['/usr/bin/redis-server /srv/my data/databases/db/us-east-1/other.conf', false],
    ['/usr/bin/redis-server *:6379', false],
  ])('recognizes "%s" as ours: %s', (line, expected) => {
    expect(isEngine(line)).toBe(expected)
  })

  test('kills one that does not end, also when the clock is set back meanwhile', async () => {
    const dir = tempDir()
    const [program, config] = [join(dir, 'redis-server'), join(dir, 'databases', 'db', 'us-east-1', 'engine.conf')]
    writeFileSync(program, `#!/bin/sh\ntrap '' TERM\necho begun\nread line\n`, { mode: 0o700 })
    const engine = spawn(program, [config], { stdio: ['pipe', 'pipe', 'ignore'] })
    const exited = once(engine, 'exit')
    await once(engine.stdout, 'data')
    let backMs = 0
    const clock: Clock = { ...systemClock, now: () => Date.now() - backMs }
    const ended = endEngines({ databasesDir: join(dir, 'databases'), binary: program, graceMs: 100, clock })
    backMs = 3_600_000
    expect(await ended).toBe(1)
    expect(await exited).toEqual([null, 'SIGKILL'])
  })
})
