import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { run } from '../support/index.js'

/** The examples that need no packages besides those of the checkout; `npm run test:examples` tries all of them. */

const SCRIPT = fileURLToPath(new URL('../../scripts/try-examples.mjs', import.meta.url))

const hasPython = (await run('python3', ['--version']).catch(() => undefined))?.code === 0

it('sign a user up and send the mail after three days', async () => {
  const names = hasPython ? ['fastify', 'python'] : ['fastify']
  const { code, stdout, stderr } = await run(process.execPath, [SCRIPT, '--installed', ...names], {
    deadlineMs: 100_000,
  })
  for (const name of names)
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining(`${name}: the mail came`)])
})
