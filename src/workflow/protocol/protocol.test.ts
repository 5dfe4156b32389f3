import { describe, expect, it } from 'vitest'
import type { LoggedElement } from '../transactions/runs-logs.js'
import { announces, belongsToRun, classify, type ItemKind, passesToEndpoint } from './protocol.js'
import { parseText, toSent, webhookOf } from './sent-steps.js'

describe('an item of a publish request', () => {
  const id = { 'upstash-workflow-runid': 'wfr_1' }
  const rows: readonly (readonly [string, Record<string, string>, ItemKind])[] = [
    ['starts a run', { 'upstash-workflow-init': 'true' }, 'trigger'],
    ['starts a run for another', { 'upstash-workflow-init': 'true', 'upstash-workflow-invoke': 'true' }, 'invoke'],
    [
      'confirms the first contact',
      { 'upstash-workflow-init': 'true', 'upstash-workflow-trigger-by-sdk': 'true' },
      'confirm',
    ],
    ['is a step', { 'upstash-workflow-init': 'false' }, 'step'],
    ['is a step by default', {}, 'step'],
    ['is a step by its call type', { 'upstash-workflow-init': 'false', 'upstash-workflow-calltype': 'step' }, 'step'],
    ['is a call', { 'upstash-workflow-init': 'false', 'upstash-workflow-calltype': 'toCallback' }, 'call'],
  ]
  it.each(rows)('%s', (_what, headers, kind) => {
    expect(belongsToRun({ ...id, ...headers })).toBe(true)
    expect(classify({ ...id, ...headers })).toBe(kind)
  })

  it('belongs to no run without a run id', () => {
    expect(belongsToRun({ 'upstash-workflow-init': 'true' })).toBe(false)
  })

  it('announces features in a list', () => {
    const headers = { 'upstash-feature-set': 'LazyFetch, WF_TriggerOnConfig' }
    expect([
      announces(headers, 'WF_TriggerOnConfig'),
      announces(headers, 'WF_DetectTrigger'),
      announces({}, 'LazyFetch'),
    ]).toEqual([true, false, false])
  })

  it('cannot set the headers that the server sets itself', () => {
    const names = [
      'x-tenant',
      'authorization',
      'upstash-label',
      'upstash-workflow-invoke-count',
      'upstash-signature',
      'upstash-message-id',
      'upstash-workflow-sdk-version',
      'user-agent',
      'host',
    ]
    expect(names.filter(passesToEndpoint)).toEqual([
      'x-tenant',
      'authorization',
      'upstash-label',
      'upstash-workflow-invoke-count',
    ])
  })
})

it('a step that would take long to parse is shown without its result', () => {
  const stepOf = (out: string) => {
    const body = new TextEncoder().encode(`{"stepId":1,"stepName":"many","stepType":"Run","out":${out}}`)
    return toSent({ body } as Partial<LoggedElement> as LoggedElement).step
  }
  const shown = { stepId: 1, stepName: 'many', stepType: 'Run' }
  const many = `[${'[],'.repeat(100_000)}[]]`
  expect(stepOf(many)).toEqual({ ...shown, out: expect.stringMatching(/^\(left out, because it has more than 50000/) })
  expect(stepOf(JSON.stringify(many))).toEqual({ ...shown, out: many })
  expect(parseText(many)).toBeUndefined()
  expect(parseText('[[]]')).toEqual([[]])
})

describe('a step that creates a webhook', () => {
  const idOf = (eventId: string) =>
    webhookOf(Buffer.from(JSON.stringify({ stepType: 'CreateWebhook', out: JSON.stringify({ eventId }) })))

  it('names an event that can come', () => {
    expect(idOf('eve_1')).toBe('eve_1')
    expect([idOf('é'.repeat(1_001)), idOf('a\0b')]).toEqual([undefined, undefined])
  })
})
