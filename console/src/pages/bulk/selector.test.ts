import { expect, it } from 'vitest'
import { type Choice, choiceOf, cliLine, curlLine, meansEverything, NO_SETTINGS, selectorOf } from './selector.js'

const URL = 'https://example.com/nightly'
const NOW = 1_000_000

it('reads an address, and leaves out what it does not know', () => {
  const search = { kind: 'resumeRuns', url: URL, label: 42, from: 5, to: 'soon', ids: [], exact: 'yes', more: 1 }
  expect(choiceOf(search)).toEqual({ kind: 'resumeRuns', url: URL, label: '42', from: 5 })
})

it('cancels by the beginning of a URL or by the whole one, and everything else by whole ones', () => {
  expect(selectorOf({ url: URL })).toEqual({ workflowUrl: URL })
  expect(selectorOf({ url: URL, exact: true })).toEqual({ workflowUrl: URL, workflowUrlExactMatch: true })
  expect(selectorOf({ kind: 'restartRuns', url: URL, status: 500 })).toEqual({
    workflowUrl: [URL],
    responseStatus: [500],
  })
})

it('takes ids alone when there are some, also when there are none of them', () => {
  expect(selectorOf({ ids: ['wfr_1'], label: 'x' })).toEqual({ workflowRunIds: ['wfr_1'] })
  expect(selectorOf({ kind: 'deleteDeadRuns', ids: ['1-0'] })).toEqual({ dlqIds: ['1-0'] })
  expect(selectorOf({ ids: [] })).toEqual({ workflowRunIds: [] })
})

it('knows when nothing is filtered', () => {
  expect(meansEverything({ kind: 'cancelRuns' })).toBe(true)
  expect(meansEverything({ ids: [] })).toBe(false)
  expect(meansEverything({ label: 'x' })).toBe(false)
})

it('writes the same for a terminal, quoted', () => {
  const choice: Choice = { url: URL, label: `it's`, from: 7 }
  const settings = { reason: 'twice', ratePerSecond: 10, fenceMs: 3_600_000 } as const
  expect(cliLine(choice, settings)).toBe(
    `homeport runs cancel --url ${URL} --label 'it'\\''s' --from 7 --reason twice --rate 10 --fence 60m --async --yes`,
  )
  const curl = curlLine(choice, settings, 'http://127.0.0.1:1', NOW)
  expect(curl).toContain('curl -X DELETE http://127.0.0.1:1/v2/workflows/runs')
  expect(curl).toContain(`"label":"it'\\''s"`)
  expect(curl).toContain(`"fenceUntil":${NOW + 3_600_000},"async":true`)
})

it('says "all" aloud, and offers no command for what the command line cannot say', () => {
  expect(cliLine({ kind: 'cancelRuns' }, NO_SETTINGS)).toBe('homeport runs cancel --all --async --yes')
  expect(cliLine({ kind: 'resumeRuns', label: 'x' }, NO_SETTINGS)).toBe('homeport runs resume --label x')
  expect(cliLine({ kind: 'resumeRuns', status: 500 }, NO_SETTINGS)).toBeUndefined()
  expect(cliLine({ kind: 'deleteDeadRuns' }, NO_SETTINGS)).toBeUndefined()
  expect(curlLine({ kind: 'resumeRuns', status: 500 }, NO_SETTINGS, 'http://q', NOW)).toContain(
    '{"kind":"resumeRuns","selector":{"responseStatus":[500]}}',
  )
})
