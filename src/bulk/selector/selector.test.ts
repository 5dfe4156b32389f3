import { describe, expect, it } from 'vitest'
import { parseSelector } from './selector.js'

const selectorOf = (body: unknown, query = '') => {
  const parsed = parseSelector(body, query)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return parsed.selector
}
const problemOf = (body: unknown, query = ''): string => {
  const parsed = parseSelector(body, query)
  return 'problem' in parsed ? parsed.problem : 'accepted'
}
const filterOf = (body: unknown, query = '') => {
  const { target } = selectorOf(body, query)
  return target.kind === 'matching' ? target.filter : target
}

describe('an empty selector', () => {
  it.each([
    ['no body', undefined, ''],
    ['null', null, ''],
    ['an empty object', {}, ''],
    ['only the token in the query', undefined, 'qstash_token=abc'],
  ])('selects every unfinished run: %s', (_, body, query) => {
    expect(selectorOf(body, query)).toMatchObject({
      target: { kind: 'matching', filter: {} },
      most: undefined,
      mode: 'sync',
      report: false,
    })
  })
})

describe('fields of a selector', () => {
  it.each<[string, unknown, string, object]>([
    ['a prefix', { workflowUrl: 'https://x/' }, '', { urlPrefix: ['https://x/'] }],
    ['prefixes', { workflowUrl: ['https://x', 'https://y'] }, '', { urlPrefix: ['https://x', 'https://y'] }],
    ['a whole URL', { workflowUrl: 'https://x/', workflowUrlExactMatch: true }, '', { url: ['https://x/'] }],
    ['explicitly no whole URL', { workflowUrl: 'u', workflowUrlExactMatch: false }, '', { urlPrefix: ['u'] }],
    ['exact in the query', undefined, 'workflowUrl=https://x&workflowUrlExactMatch=true', { url: ['https://x'] }],
    ['a label', { label: 'a' }, '', { label: ['a'] }],
    ['repeated labels', undefined, 'label=a&label=b', { label: ['a', 'b'] }],
    ['labels with commas', undefined, 'label=a,b&label=c', { label: ['a', 'b', 'c'] }],
    ['an element twice', { label: ['a', 'a'] }, '', { label: ['a'] }],
    ['host and path', { host: 'x:1', path: '/a' }, '', { host: ['x:1'], path: ['/a'] }],
    ['the caller', { callerIp: '::1' }, '', { callerIp: ['::1'] }],
    ['the caller in another spelling', undefined, 'callerIP=127.0.0.1', { callerIp: ['127.0.0.1'] }],
    ['a flow-control key', { flowControlKey: 'k' }, '', { flowKey: ['k'] }],
    ['dates', { fromDate: 0, toDate: 1_700_000_000_000 }, '', { createdAfter: 0, createdBefore: 1_700_000_000_000 }],
    ['dates in the query', undefined, 'fromDate=5&toDate=6', { createdAfter: 5, createdBefore: 6 }],
    ['fields in both places', { label: 'a' }, 'host=x', { label: ['a'], host: ['x'] }],
    ['the same in both places', { label: ['a', 'b'] }, 'label=b,a', { label: ['a', 'b'] }],
    ['a comma inside a URL', undefined, 'workflowUrl=https://x/a,b', { urlPrefix: ['https://x/a,b'] }],
    ['URLs with commas', undefined, 'workflowUrl=https://x,http://y', { urlPrefix: ['https://x', 'http://y'] }],
    ['a comma inside a path', undefined, 'path=/a,b', { path: ['/a,b'] }],
    ['an encoded URL', undefined, 'workflowUrl=http%3A%2F%2Fx%2F%3Fa%3D1', { urlPrefix: ['http://x/?a=1'] }],
    ['a body text with a comma', { label: 'a,b' }, '', { label: ['a,b'] }],
  ])('%s', (_, body, query, filter) => {
    expect(filterOf(body, query)).toEqual(filter)
  })

  it.each<[string, unknown, string, readonly string[]]>([
    ['a list', { workflowRunIds: ['a', 'b'] }, '', ['a', 'b']],
    ['one', { workflowRunIds: 'a' }, '', ['a']],
    ['none', { workflowRunIds: [] }, '', []],
    ['repeated', undefined, 'workflowRunIds=a&workflowRunIds=b', ['a', 'b']],
    ['in both places, one of them twice', { workflowRunIds: ['b', 'a', 'b'] }, 'workflowRunIds=a,b', ['b', 'a', 'b']],
    ['beside filters, which are ignored', { workflowRunIds: ['a'], label: 'x', fromDate: 3 }, '', ['a']],
    ['beside a flag that says how to compare', { workflowRunIds: ['a'], workflowUrlExactMatch: true }, '', ['a']],
  ])('ids: %s', (_, body, query, ids) => {
    expect(filterOf(body, query)).toEqual({ kind: 'named', ids })
  })

  it('reads mode, count and report', () => {
    expect(selectorOf({ count: 5, report: true })).toMatchObject({ most: 5, report: true, mode: 'sync' })
    expect(selectorOf({ async: true })).toMatchObject({ mode: 'async' })
    expect(selectorOf(undefined, 'dryRun=true&count=0')).toMatchObject({ mode: 'dryRun', most: 0 })
  })

  it('dryRun wins over async', () => {
    expect(selectorOf({ dryRun: true, async: true })).toMatchObject({ mode: 'dryRun' })
  })
})

describe('anything unknown or invalid refuses the request', () => {
  it.each<[string, unknown, string, string]>([
    ['a list as body', [], '', 'must be a JSON object such as {"label": "nightly"}, or empty; found a list'],
    ['a string as body', 'all', '', 'found a string'],
    ['a number as body', 5, '', 'found a number'],
    ['true as body', true, '', 'found a boolean'],
    ['a misspelled field', { lable: 'a' }, '', '`lable` is not a field of a selector. Did you mean `label`?'],
    ['a misspelled parameter', undefined, 'workflowurl=x', 'Did you mean `workflowUrl`?'],
    ['a singular', { workflowRunId: 'a' }, '', 'Did you mean `workflowRunIds`?'],
    ["a client library's word", { ids: ['a'] }, '', 'Use `workflowRunIds`.'],
    ['another one', { urlStartingWith: 'x' }, '', 'Use `workflowUrl`, which compares the beginning'],
    ['all', { all: true }, '', 'Leave the selector empty to cancel every run.'],
    ['a nested filter', { filter: { label: 'a' } }, '', 'Put the filters at the top level.'],
    [
      'a field that resembles none',
      { zzzzzzzz: 1 },
      '',
      '`zzzzzzzz` is not a field of a selector. Fields: workflowRunIds,',
    ],
    ["a field of every object's prototype", JSON.parse('{"__proto__": 1}'), '', '`__proto__` is not a field'],
    ['another one', { constructor: 1 }, '', '`constructor` is not a field'],
    ['a number as string', { label: 5 }, '', '`label` must be a string or a list of strings; found 5.'],
    ['null as string', { label: null }, '', '`label` must be a string or a list of strings; found null.'],
    [
      'null as ids',
      { workflowRunIds: null },
      '',
      '`workflowRunIds` must be a string or a list of strings; found null.',
    ],
    ['an object as string', { host: { a: 1 } }, '', '`host` must be a string or a list of strings; found {"a":1}.'],
    ['a number among ids', { workflowRunIds: ['a', 7] }, '', '`workflowRunIds[1]` must be a string'],
    ['a list in a list', { label: [['a'], 'b'] }, '', '`label[0]` must be a string'],
    ['an empty string', { label: '' }, '', '`label` is an empty string.'],
    ['an empty string in a list', { label: ['a', ''] }, '', '`label[1]` is an empty string.'],
    ['an empty id', { workflowRunIds: [''] }, '', '`workflowRunIds` is an empty string.'],
    ['an empty parameter', undefined, 'label=', '`label` is an empty string.'],
    ['a parameter without value', undefined, 'workflowRunIds', '`workflowRunIds` is an empty string.'],
    ['a comma too many', undefined, 'label=a,', '`label[1]` is an empty string.'],
    ['an empty list', { label: [] }, '', '`label` is an empty list, which no run can match.'],
    ['an empty list of URLs', { workflowUrl: [] }, '', '`workflowUrl` is an empty list'],
    ['a character no run has', { workflowUrl: 'a\0b' }, '', '`workflowUrl` holds the character U+0000'],
    ['a label with a bar', { label: 'a|b' }, '', '`label` must not hold "|"; found "a|b".'],
    ['a date as string', { fromDate: '5' }, '', '`fromDate` must be a time in whole Unix milliseconds; found "5".'],
    ['an ISO date', { toDate: '2026-01-01' }, '', 'found "2026-01-01".'],
    ['a word as date', undefined, 'fromDate=yesterday', 'found "yesterday".'],
    ['a negative date', { fromDate: -1 }, '', 'found -1.'],
    ['a fraction', { fromDate: 1.5 }, '', 'found 1.5.'],
    ['a huge date', { toDate: 1e300 }, '', 'found 1e+300.'],
    ['an infinite date', JSON.parse('{"toDate": 1e999}'), '', 'found Infinity.'],
    ['no number', undefined, 'toDate=NaN', 'found "NaN".'],
    [
      'seconds',
      { fromDate: 1_700_000_000 },
      '',
      '`fromDate` must be in Unix milliseconds; found 1700000000, which looks like seconds',
    ],
    [
      'microseconds',
      { toDate: 1_700_000_000_000_000 },
      '',
      '`toDate` must be in Unix milliseconds; found 1700000000000000, which looks like microseconds',
    ],
    ['dates the wrong way round', { fromDate: 20, toDate: 10 }, '', '`fromDate` (20) must be before `toDate` (10).'],
    ['an empty window', { fromDate: 10, toDate: 10 }, '', '`fromDate` (10) must be before `toDate` (10).'],
    ['a window over both places', { fromDate: 20 }, 'toDate=10', '`fromDate` (20) must be before `toDate` (10).'],
    ['a date twice', undefined, 'fromDate=1&fromDate=2', 'The query has `fromDate` 2 times; it takes one value.'],
    ['a negative count', { count: -1 }, '', '`count` must be a whole number, 0 or more; found -1.'],
    ['a string as count', { count: '5' }, '', '`count` must be a whole number, 0 or more; found "5".'],
    ['a word as flag', { dryRun: 'yes' }, '', '`dryRun` must be true or false; found "yes".'],
    ['a quoted flag', { dryRun: 'true' }, '', '`dryRun` must be true or false; found "true".'],
    ['a number as flag', undefined, 'dryRun=1', '`dryRun` must be true or false; found "1".'],
    ['a flag without value', undefined, 'dryRun', '`dryRun` must be true or false; found "".'],
    ['two values', { label: 'a' }, 'label=b', '`label` is in the body and in the query with different values.'],
    ['two lists', { label: ['a'] }, 'label=a,b', '`label` is in the body and in the query'],
    ['two flags', { dryRun: true }, 'dryRun=false', '`dryRun` is in the body and in the query'],
    ['two spellings', { callerIp: 'a', callerIP: 'b' }, '', '`callerIp` is given twice.'],
    ['exact without a URL', { workflowUrlExactMatch: true }, '', '`workflowUrl` is missing.'],
    ['a bad filter beside ids', { workflowRunIds: ['a'], lable: 'b' }, '', '`lable` is not a field'],
  ])('%s', (_, body, query, text) => {
    expect(problemOf(body, query)).toContain(text)
    expect(problemOf(body, query)).toMatch(/Nothing was cancelled\.$/)
  })

  it('reports all problems at once', () => {
    const problem = problemOf({ lable: 'a', count: -1 }, 'fromDate=x')
    expect(problem).toMatch(/`fromDate`.*`lable`.*`count`/)
  })

  it('reports the first few of very many problems, and builds no more texts', () => {
    const names = Array.from({ length: 200_000 }, (_, index) => `lable${index}`)
    const body = Object.fromEntries(names.map((name) => [name, 1]))
    const problem = problemOf(body)
    expect(problem.match(/is not a field of a selector/g)).toHaveLength(5)
    expect(problem).toMatch(/There are more problems\. Nothing was cancelled\.$/)
    expect(problemOf(body, 'fromDate=x')).toMatch(/^`fromDate` must be a time/)
  })

  it('keeps error texts short for any input', () => {
    const long = 'x'.repeat(100_000)
    expect(problemOf({ [long]: 1, count: long, label: { long } }).length).toBeLessThan(1_500)
  })
})
