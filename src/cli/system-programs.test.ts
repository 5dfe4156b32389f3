import { expect, it } from 'vitest'
import { runToEnd } from './system-programs.js'

it('the error says why a program failed, also when the system could not start it', async () => {
  const env = { PATH: '/usr/bin:/bin' }
  expect(await runToEnd('true', [], env)).toBeUndefined()
  expect(await runToEnd('false', [], env)).toBe('has failed with code 1')
  expect(await runToEnd('sh', ['-c', 'kill -9 $$'], env)).toBe('was ended by SIGKILL')
  expect(await runToEnd('no-such-program', [], env)).toBe('cannot be run (spawn no-such-program ENOENT)')
  expect(await runToEnd('true', ['\0'], env)).toContain('cannot be run')
})
