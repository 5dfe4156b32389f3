import { expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { FAILED } from '../exit-codes.js'
import { runProcesses } from './processes.js'

it('a process that the system cannot start is reported, and ends the command like any failed start', async () => {
  const { execPath } = process
  let errors = ''
  process.execPath = '/nowhere/node'
  try {
    const code = await runProcesses({
      specs: [{ name: 'a', args: [] }],
      io: { out: () => undefined, err: (text) => (errors += text) },
      clock: systemClock,
      stopRequests: { next: () => new Promise(() => undefined) },
      stopDeadlineMs: 1_000,
      onServing: () => undefined,
    })
    expect([code, errors]).toEqual([FAILED, 'The system did not start the process a: spawn /nowhere/node ENOENT.\n'])
  } finally {
    process.execPath = execPath
  }
})
