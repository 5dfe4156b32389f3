import { expect, it } from 'vitest'
import { type Choice, NO_SETTINGS } from './selector.js'
import { cliLine, curlLine } from './terminal.js'

const URL = 'https://example.com/nightly'
const NOW = 1_000_000

it('the command has shell quotes', () => {
  const choice: Choice = { url: URL, label: `it's`, from: 7 }
  const settings = { ...NO_SETTINGS, reason: 'twice', ratePerSecond: 10, fenceMs: 3_600_000 } as const
  expect(cliLine(choice, settings)).toBe(
    `homeport runs cancel --url ${URL} --label 'it'\\''s' --from 7 --reason twice --rate 10 --fence 60m --async --yes`,
  )
  const curl = curlLine(choice, settings, 'http://127.0.0.1:1', NOW)
  expect(curl).toContain('curl -X DELETE http://127.0.0.1:1/v2/workflows/runs')
  expect(curl).toContain(`"label":"it'\\''s"`)
  expect(curl).toContain(`"fenceUntil":${NOW + 3_600_000},"async":true`)
})

it('the command matches active runs by URL prefix, and says how a pause treats their clocks', () => {
  const held = { ...NO_SETTINGS, pauseClock: 'hold', undoClock: 'now', fenceMs: 60_000 } as const
  const choice: Choice = { kind: 'pauseRuns', url: URL, exact: true }
  expect(cliLine(choice, held)).toBe(`homeport runs pause --url ${URL} --exact --hold-clock`)
  expect(curlLine(choice, held, 'http://q', NOW)).toContain(
    `{"kind":"pauseRuns","selector":{"workflowUrl":"${URL}","workflowUrlExactMatch":true},"pauseClock":"hold"}`,
  )
  expect(cliLine({ kind: 'unpauseRuns', url: URL }, held)).toBe(`homeport runs unpause --url ${URL}`)
  expect(cliLine({ kind: 'undoCancelRuns', ids: ['wfr_1'] }, held)).toBe(
    'homeport bulk start undoCancelRuns wfr_1 --clock now --yes',
  )
})

it('the command has --all without filters, and is the general one where the short ones lack a flag', () => {
  expect(cliLine({ kind: 'cancelRuns' }, NO_SETTINGS)).toBe('homeport runs cancel --all --async --yes')
  expect(cliLine({ kind: 'resumeRuns', label: 'x' }, NO_SETTINGS)).toBe('homeport runs resume --label x')
  expect(cliLine({ kind: 'deleteDeadRuns' }, NO_SETTINGS)).toBe('homeport bulk start deleteDeadRuns --all --yes')
  expect(cliLine({ kind: 'resumeRuns', label: 'x' }, { ...NO_SETTINGS, reason: 'twice' })).toBe(
    'homeport bulk start resumeRuns --label x --reason twice --yes',
  )
  expect(cliLine({ kind: 'resumeRuns', status: 500 }, NO_SETTINGS)).toBe(
    `homeport bulk start resumeRuns --selector '{"responseStatus":[500]}' --yes`,
  )
  expect(curlLine({ kind: 'resumeRuns', status: 500 }, NO_SETTINGS, 'http://q', NOW)).toContain(
    '{"kind":"resumeRuns","selector":{"responseStatus":[500]}}',
  )
})

it('conditions become flags of the commands that have them', () => {
  const stuck: Choice = { label: 'x', state: 'retry', older: '2h', attempts: 3, payload: '$.country = "DE"' }
  const flags = `--label x --state retry --older-than 2h --attempts-at-least 3 --payload '$.country = "DE"'`
  expect(cliLine(stuck, NO_SETTINGS)).toBe(`homeport runs cancel ${flags} --async --yes`)
  expect(cliLine({ kind: 'resumeRuns', error: 'down', saved: 'mine' }, NO_SETTINGS)).toBe(
    'homeport bulk start resumeRuns --error down --saved mine --yes',
  )
  expect(cliLine({ kind: 'deleteDeadRuns', status: 500, error: 'down' }, NO_SETTINGS)).toBe(
    `homeport bulk start deleteDeadRuns --selector '{"responseStatus":[500],"errorContains":"down"}' --yes`,
  )
})

it('the command for messages and dead letters is one of the queue', () => {
  expect(cliLine({ kind: 'cancelMessages', queue: 'mails', from: 7 }, NO_SETTINGS)).toBe(
    'homeport queue messages cancel --from 7 --queue mails --yes',
  )
  expect(cliLine({ kind: 'retryDeadLetters', ids: ['1-0', '2-0'] }, NO_SETTINGS)).toBe(
    'homeport queue dlq retry 1-0 2-0',
  )
  expect(cliLine({ kind: 'deleteDeadLetters' }, NO_SETTINGS)).toBe('homeport queue dlq delete --all --yes')
  const later = { ...NO_SETTINGS, delay: ' 10m ', retries: 0 } as const
  expect(cliLine({ kind: 'retryDeadLetters', label: 'x' }, later)).toBe(
    'homeport queue dlq retry --label x --delay 10m --retries 0',
  )
  expect(curlLine({ kind: 'retryDeadLetters' }, later, 'http://q', NOW)).toContain(
    `-H 'upstash-delay: 10m' \\\n  -H 'upstash-retries: 0'`,
  )
  expect(cliLine({ kind: 'deleteDeadLetters' }, later)).toBe('homeport queue dlq delete --all --yes')
  expect(cliLine({ kind: 'cancelMessages', host: 'h' }, NO_SETTINGS)).toBe(
    'homeport bulk start cancelMessages --host h --yes',
  )
})
