import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { childEnv, processesMarked, run, tempDir, waitFor } from '../support/index.js'

/** `homeport/testing` in an application of its own, outside of this runner. */

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url))

/** A folder in which the package and the clients are installed. The servers of its tests keep their data below `TMPDIR`. */
function application() {
  const folder = tempDir()
  mkdirSync(join(folder, 'node_modules'))
  mkdirSync(join(folder, 'tmp'))
  symlinkSync(CHECKOUT, join(folder, 'node_modules/homeport'))
  symlinkSync(join(CHECKOUT, 'node_modules/@upstash'), join(folder, 'node_modules/@upstash'))
  return { folder, env: childEnv({ TMPDIR: join(folder, 'tmp') }) as Record<string, string> }
}

async function expectNothingLeft(folder: string): Promise<void> {
  await waitFor(() => processesMarked(folder).length === 0, { what: 'the test servers to end' })
  await waitFor(() => readdirSync(join(folder, 'tmp')).length === 0, { what: 'their data to be deleted' })
}

describe('homeport/testing', () => {
  it('runs under node:test, and ends with it', async () => {
    const { folder, env } = application()
    cpSync(fileURLToPath(new URL('runners/node-test.mjs', import.meta.url)), join(folder, 'mail.mjs'))
    const runTests = ['--test', '--test-reporter=tap', 'mail.mjs']
    const { code, stdout } = await run(process.execPath, runTests, { cwd: folder, env })
    expect([code, stdout]).toEqual([0, expect.stringContaining('# pass 1')])
    await expectNothingLeft(folder)
  })

  it('ends with a process that is killed', async () => {
    const { folder, env } = application()
    const program = `
      const { startHomeport } = require('homeport/testing')
      startHomeport().then(async (homeport) => {
        await homeport.createDatabase()
        console.log('serving')
        setInterval(() => undefined, 1_000)
      })`
    writeFileSync(join(folder, 'app.cjs'), program)
    const child = spawn(process.execPath, ['app.cjs'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    expect(processesMarked(folder).length).toBeGreaterThan(1)
    child.kill('SIGKILL')
    await expectNothingLeft(folder)
  })

  it('has types that stand alone', async () => {
    const { folder } = application()
    const program = `
      import { type Delivery, startHomeport } from 'homeport/testing'
      const homeport = await startHomeport({ options: { retentionMs: '1h' } })
      const deliveries: Delivery[] = await homeport.deliveries({ count: 1 })
      const token: string = homeport.env.QSTASH_TOKEN
      // @ts-expect-error time is a number
      await homeport.advanceTime('1d')
      console.log(deliveries[0]?.at.getTime(), token)`
    writeFileSync(join(folder, 'app.mts'), program)
    const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', '', 'app.mts']
    const { code, stdout } = await run(join(CHECKOUT, 'node_modules/.bin/tsc'), flags, { cwd: folder })
    expect([code, stdout]).toEqual([0, ''])
  })
})
