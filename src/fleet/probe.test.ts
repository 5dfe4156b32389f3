import { scrypt as scryptWithCallback } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { probeEngine, requireUsableEngine } from './probe.js'
import { isFixedPackage, isFixedUpstream, problemsOf } from './safety.js'
import { localEngine } from './testing/test-fleet.js'

const scrypt = promisify<string, string, number, Buffer>(scryptWithCallback)

describe('probing', () => {
  test('finds the engine of this machine', async () => {
    const engine = await localEngine()
    expect(engine.binary).toMatch(/^\/.*(redis|valkey)-server$/)
    expect(engine.version).toMatch(/^\d+\.\d+\.\d+$/)
    expect(await probeEngine(engine.binary)).toEqual(engine)
    expect(engine.problems).toEqual([])
  })

  test('says how to install an engine when there is none', async () => {
    await expect(probeEngine('no-such-engine')).rejects.toMatchObject({
      code: 'engine_missing',
      message: expect.stringMatching(/no-such-engine.*apt-get install redis-server/),
    })
    await expect(probeEngine('/no/such/engine')).rejects.toMatchObject({ code: 'engine_missing' })
  })

  /** A program that does this, as a shell script. */
  const programOf = (script: string, mode = 0o755): string => {
    const binary = join(tempDir(), 'redis-server')
    writeFileSync(binary, `#!/bin/sh\n${script}\n`)
    chmodSync(binary, mode)
    return binary
  }
  const SAYS_VERSION = '[ "$1" = --version ] && echo "Redis server v=7.0.1 sha=0" && exit 0'

  test.each([
    ['is no engine', 'echo hello', 'it is not Redis or Valkey'],
    ['crashes', 'kill -SEGV $$', 'it ended with SIGSEGV'],
    [
      'lacks a library',
      'echo libjemalloc.so.2 is missing >&2; exit 127',
      'code 127 and says "libjemalloc.so.2 is missing"',
    ],
    [
      'reports a version but does not run',
      `${SAYS_VERSION}; echo no threads; exit 1`,
      'it does not start and says "no threads"',
    ],
  ])('names a program that %s, and what it said', async (_what, script, problem) => {
    const binary = programOf(script)
    const message = expect.stringContaining(problem)
    await expect(probeEngine(binary)).rejects.toMatchObject({ code: 'engine_unusable', details: { binary }, message })
  })

  test('names a program that ends at once, also while all file operations are slow', async () => {
    const binary = programOf(`${SAYS_VERSION}; exit 1`)
    // File operations wait behind this work: Node has four threads for both.
    let isOver = false
    onTestFinished(() => {
      isOver = true
    })
    const work = async () => {
      while (!isOver) await scrypt('', '', 32)
    }
    for (let thread = 0; thread < 4; thread++) void work()
    await expect(probeEngine(binary)).rejects.toThrow('it does not start')
  })

  test('names a file that may not be run', async () => {
    const binary = programOf('exit 0', 0o644)
    const problem = 'it is not a file that this user may run'
    await expect(probeEngine(binary)).rejects.toMatchObject({ code: 'engine_unusable', details: { binary, problem } })
  })

  test.each(['/nowhere/of/anybody', '/proc', `/dev/shm/${'x'.repeat(90)}`])(
    'needs no usable TMPDIR, such as %s',
    async (folder) => {
      vi.stubEnv('TMPDIR', folder)
      onTestFinished(() => void vi.unstubAllEnvs())
      const { binary } = await localEngine()
      expect(await probeEngine(binary)).toMatchObject({ binary })
    },
  )

  test('reports the version of an engine that is too old to list its commands', async () => {
    const binary = programOf('[ "$1" = --version ] && echo "Redis server v=6.0.16 sha=0" && exit 0\nexit 1')
    const { problems } = await probeEngine(binary)
    expect(problems).toEqual(['redis 6.0.16 is older than 7.0.0, the oldest that works.'])
  })
})

describe('an engine with a known vulnerability', () => {
  test.each([
    ['redis', '7.0.15', false],
    ['redis', '7.2.10', false],
    ['redis', '7.2.11', true],
    ['redis', '7.4.5', false],
    ['redis', '8.1.0', false],
    ['redis', '8.2.2', true],
    ['redis', '8.4.0', true],
    ['valkey', '7.2.11', true],
    ['valkey', '8.0.5', false],
    ['valkey', '8.1.4', true],
    ['valkey', '9.0.0', true],
  ] as const)('%s %s is fixed by its makers: %s', (kind, version, expected) => {
    expect(isFixedUpstream(kind, version)).toBe(expected)
  })

  test('is accepted when its package has the fix', () => {
    expect(isFixedPackage('5:7.0.15-1~deb12u5')).toBe(false)
    expect(isFixedPackage('5:7.0.15-1~deb12u6')).toBe(true)
    expect(isFixedPackage('5:7.0.15-1~deb12u10')).toBe(true)
    expect(isFixedPackage('5:8.0.2-3')).toBe(false)
    expect(isFixedPackage('5:8.0.2-3+deb13u1')).toBe(true)
    expect(isFixedPackage('8.1.1+dfsg1-3')).toBe(false)
    expect(isFixedPackage('8.1.1+dfsg1-3+deb13u2')).toBe(true)
    expect(isFixedPackage('8.0.1+dfsg1-1~bpo12+1')).toBe(false)
    const evidence = { kind: 'redis', version: '7.0.15', packageVersion: '5:7.0.15-1~deb12u4' } as const
    expect(problemsOf({ ...evidence, changeLogNamesFix: false })).toHaveLength(1)
    expect(problemsOf({ ...evidence, changeLogNamesFix: true })).toEqual([])
  })

  test('or too old a version is refused, unless the operator allows it', async () => {
    const problems = problemsOf({ kind: 'redis', version: '6.2.20', changeLogNamesFix: true })
    expect(problems).toEqual([expect.stringContaining('older than 7.0.0')])
    const engine = { ...(await localEngine()), problems }
    expect(() => requireUsableEngine(engine, false)).toThrow(/older than 7\.0\.0/)
    expect(() => requireUsableEngine(engine, true)).not.toThrow()
  })
})
