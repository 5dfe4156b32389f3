import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run, tempDir } from '../../test/support/index.js'
import { runCli } from './index.js'

async function scriptFor(shell: string): Promise<string> {
  const out: string[] = []
  expect(await runCli(['completion', shell], { out: (text) => void out.push(text), err: () => undefined })).toBe(0)
  return out.join('')
}

it('the completion offers commands and flags in a real bash, and skips values', async () => {
  const script = join(tempDir(), 'homeport.bash')
  writeFileSync(script, await scriptFor('bash'))
  const complete = async (...words: string[]) => {
    const line = ['homeport', ...words].map((word) => `'${word}'`).join(' ')
    const code = `source ${script}; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _homeport; echo "\${COMPREPLY[@]}"`
    return (await run('bash', ['-c', code])).stdout.trim().split(' ')
  }
  expect(await complete('au')).toEqual(['audit'])
  expect(await complete('db', 're')).toEqual(['rename', 'regions', 'resume', 'reset-password', 'restore', 'recover'])
  expect(await complete('queue', 'dlq', '')).toEqual(expect.arrayContaining(['list', 'retry', '--help']))
  expect(await complete('db', 'create', '--name', 'shop', '--pl')).toEqual(['--platform', '--plan'])
})

it('the completion has all commands for zsh and fish', async () => {
  const zsh = await scriptFor('zsh')
  expect(zsh).toMatch(/^#compdef homeport\n/)
  expect(zsh).toContain("'queue dlq'")
  const fish = await scriptFor('fish')
  expect(fish).toContain(`complete -c homeport -n '__homeport_at "queue dlq"' -f -a retry`)
  expect(fish).toContain(`complete -c homeport -n '__homeport_at "runs cancel"' -l dry-run`)
})
