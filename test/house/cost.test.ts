import { expect, it } from 'vitest'
import { run } from '../support/index.js'

const COST = new URL('../../scripts/lib/cost.mjs', import.meta.url).href

it.runIf(process.platform === 'linux')(
  'counts the processor time of programs that were started and ended',
  async () => {
    const work = 'while (process.cpuUsage().user < 300_000) for (let i = 0; i < 1e6; i++);'
    const code = `import { execFileSync } from 'node:child_process'
    import { costSoFar, processorSeconds } from ${JSON.stringify(COST)}
    const before = processorSeconds()
    execFileSync(process.execPath, ['-e', ${JSON.stringify(work)}])
    console.log(JSON.stringify({ spent: processorSeconds() - before, line: costSoFar() }))`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code])
    const { spent, line } = JSON.parse(stdout) as { spent: number; line: string }
    expect(spent).toBeGreaterThan(0.25)
    expect(line).toMatch(/^took \d+ s, and \d+ s of processor time$/)
  },
)
