import { Client } from '@upstash/workflow'
import { beforeAll, expect, it } from 'vitest'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { DEADLINE_MS, heading, loseAnswer, PHONE, type SignedIn, signIn } from './support/browser.js'
import './support/patience.js'
import { problemsOf } from './support/problems.js'

let homeport: RunningHomeport
let browser: SignedIn
let client: Client

beforeAll(async () => {
  homeport = await startHomeport()
  client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken })
  browser = await signIn(homeport)
})

/** Runs that start in an hour, so that only the tests change them. */
async function trigger(count: number, label: string): Promise<void> {
  const url = 'http://127.0.0.1:9/nightly'
  await client.trigger(Array.from({ length: count }, () => ({ url, label, delay: '1h' as const })))
}

async function statesOf(label: string): Promise<Set<string>> {
  const { body } = await homeport.queue('GET', `/v2/workflows/logs?label=${label}&count=100`)
  return new Set((body as { runs: { workflowState: string }[] }).runs.map(({ workflowState }) => workflowState))
}

/** The last step: only the right number enables the button. */
async function confirmNumber(count: number, item = 'run'): Promise<void> {
  const { page } = browser
  const button = page.getByRole('button', { name: `Cancel ${count} ${item}` })
  await page.getByLabel(/^Type/).fill(String(count + 1))
  expect(await button.isDisabled()).toBe(true)
  await page.getByLabel(/^Type/).fill(String(count))
  await button.click()
}

it('every page is empty at first, says what to do, and is accessible', async () => {
  await browser.visit('/bulk-actions', 'Bulk actions')
  await browser.page.getByText('No bulk actions yet').waitFor()
  expect(await problemsOf(browser.page)).toEqual([])
  await browser.page.getByRole('link', { name: 'New bulk action' }).first().click()
  await heading(browser.page, 'New bulk action').waitFor()
  await browser.page.getByText('0 runs match').waitFor()
  expect(await browser.page.getByRole('button', { name: 'Check the matches' }).isDisabled()).toBe(true)
  expect(await problemsOf(browser.page)).toEqual([])
})

it('the console cancels 40 runs through the wizard, and no others', async () => {
  const { page } = browser
  await Promise.all([trigger(40, 'nightly'), trigger(3, 'daily')])
  await browser.enter('/bulk-actions/new', 'New bulk action')
  await page.getByText('43 runs match, which is all of them').waitFor()
  await page.getByLabel('Label').fill('nightly')
  await page.getByText('40 runs match').waitFor()
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByText('The first 20 matches').waitFor()
  await page.getByText('and 20 more runs').waitFor()
  await page.getByLabel('Reason').fill('started twice')
  await page
    .getByLabel('Command line')
    .getByText("homeport runs cancel --label nightly --reason 'started twice'")
    .waitFor()
  await page.getByLabel('curl').getByText('"label":"nightly"').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Continue' }).click()
  expect(await problemsOf(page)).toEqual([])
  await confirmNumber(40)
  await page.getByText('40 of 40 runs').waitFor()
  await page.getByText('Finished', { exact: true }).waitFor()
  await page.getByText('Cancelled 40').waitFor()
  await page.getByText('started twice').waitFor()
  expect(await problemsOf(page)).toEqual([])
  expect(await statesOf('nightly')).toEqual(new Set(['RUN_CANCELED']))
  expect(await statesOf('daily')).toEqual(new Set(['RUN_STARTED']))
})

it('the console links outcomes to their runs, which show who cancelled them and why', async () => {
  const { page } = browser
  await page.getByRole('table', { name: 'Outcomes' }).getByRole('link').first().click()
  await page.getByText('A bulk action cancelled this run').waitFor()
  await page.getByText('“started twice”').waitFor()
  await page.getByRole('link', { name: 'Show the bulk action' }).click()
  await page.getByText('40 of 40 runs').waitFor()
})

it('the console undoes the cancel: the runs come back, and show it', async () => {
  const { page } = browser
  await page.getByRole('button', { name: 'Undo the cancel' }).click()
  const dialog = page.getByRole('dialog', { name: 'Undo this cancel' })
  await dialog.getByText('It cancelled 40 runs').waitFor()
  // A question about this page does not stay above another one.
  await page.goBack()
  await dialog.waitFor({ state: 'detached' })
  await page.goForward()
  await page.getByRole('button', { name: 'Undo the cancel' }).click()
  await dialog.getByText('It cancelled 40 runs').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Bring them back' }).click()
  await page.getByText('Brought back 40').waitFor()
  expect(await statesOf('nightly')).toEqual(new Set(['RUN_STARTED']))
})

it('the console pauses a slow action, resumes it faster, and aborts it', async () => {
  const { page } = browser
  await trigger(120, 'slow')
  await browser.visit('/bulk-actions/new?label=slow', 'New bulk action')
  await page.getByText('120 runs match').waitFor()
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByLabel('Items per second').fill('1')
  await page.getByRole('combobox', { name: 'Refuse new runs' }).click()
  await page.getByRole('option', { name: 'For 1 hour' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
  // Each step is in the history of the browser, and nothing that was chosen is lost.
  await page.getByRole('group', { name: 'Step 3 of 3' }).waitFor()
  await page.goBack()
  await page.getByRole('group', { name: 'Step 2 of 3' }).waitFor()
  await page.goBack()
  await page.getByText('120 runs match').waitFor()
  await page.goForward()
  expect(await page.getByLabel('Items per second').inputValue()).toBe('1')
  await page.goForward()
  await confirmNumber(120)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused', { exact: true }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByLabel('Items per second').fill('2')
  await page.getByRole('button', { name: 'Change the rate' }).click()
  await page.getByText('The rate was changed.').first().waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('Running', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Lift the fence' }).click()
  await page.getByText('Matching runs may start again.').first().waitFor()
  await page.getByRole('button', { name: 'Abort' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Abort the action' }).click()
  await page.getByText('Aborted', { exact: true }).waitFor()
  await page.getByText(/Skipped \d+/).waitFor()
  await page.getByRole('combobox', { name: 'Outcome' }).click()
  await page.getByRole('option', { name: 'Skipped' }).click()
  await page.waitForURL(/outcome=skipped/)
  expect(await statesOf('slow')).toContain('RUN_STARTED')
})

it('the console cancels messages by label', async () => {
  const { page } = browser
  const message = {
    destination: 'http://127.0.0.1:9/mail',
    headers: { 'upstash-delay': '1h', 'upstash-label': 'mails' },
  }
  await homeport.queue(
    'POST',
    '/v2/batch',
    Array.from({ length: 30 }, () => message),
  )
  await browser.visit('/messages?label=mails', 'Messages')
  await page.getByRole('link', { name: 'Cancel in bulk…' }).click()
  await page.getByText('30 messages match').waitFor()
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByText('The first 20 matches').waitFor()
  await page.getByLabel('Command line').getByText('homeport queue messages cancel --label mails --yes').waitFor()
  await page.getByLabel('Items per second').fill('1')
  await page.getByLabel('Command line').getByText('homeport bulk start cancelMessages --label mails --rate 1').waitFor()
  await page.getByLabel('Items per second').fill('')
  await page.getByRole('button', { name: 'Continue' }).click()
  await loseAnswer(page, '**/v2/workflows/bulkActions')
  await confirmNumber(30, 'message')
  await page.getByText('The action may have started nevertheless').waitFor()
  expect(await page.getByRole('button', { name: 'Cancel 30 messages' }).isDisabled()).toBe(true)
  await page.getByRole('link', { name: 'open it' }).click()
  await page.getByText('Cancelled 30').waitFor()
  expect(await problemsOf(page)).toEqual([])
})

it('the console keeps the filters that also apply to dead letters when the kind changes', async () => {
  const { page } = browser
  await browser.visit('/bulk-actions/new?label=daily&host=example.com', 'New bulk action')
  await page.getByRole('combobox', { name: 'Action' }).click()
  await page.getByRole('option', { name: 'Delete dead letters' }).click()
  await page.getByText('0 dead letters match').waitFor()
  // The form does not use an invalid status as a filter: more dead letters would match than the user means.
  await page.getByLabel('Status of the failed response').fill('5xx')
  await page.getByText('Enter a status such as 500').waitFor()
  await page.getByLabel('Status of the failed response').fill('')
  await page.waitForURL(/kind=deleteDeadLetters&label=daily$|label=daily&kind=deleteDeadLetters$/)
  expect(await page.getByRole('textbox', { name: 'Label' }).inputValue()).toBe('daily')
  expect(await problemsOf(page)).toEqual([])
})

it('the console selects by conditions, shows where an expression is wrong, and saves the selection', async () => {
  const { page } = browser
  const url = 'http://127.0.0.1:9/orders'
  const orders = [{ total: 150 }, { total: 50 }, 'no order'].map((body) => ({
    url,
    body,
    label: 'order',
    delay: '1h' as const,
  }))
  await client.trigger(orders)
  await browser.enter('/bulk-actions/new?label=order', 'New bulk action')
  await page.getByText('3 runs match').waitFor()
  await page.getByLabel('Payload matches').fill('$.total >')
  await page.getByRole('alert').getByText('at character 10, the end').waitFor()
  await page.getByLabel('Payload matches').fill('$.total > 100')
  await page.getByText('1 run matches').waitFor()
  await page.getByText('1 item could not be read').waitFor()
  await page.getByRole('combobox', { name: 'State' }).click()
  await page.getByRole('option', { name: 'Delayed' }).click()
  await page.getByText('1 run matches').waitFor()
  await page.getByLabel('Save this selection as').fill('large-orders')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The selection was saved as "large-orders".').first().waitFor()
  expect(await problemsOf(page)).toEqual([])

  await browser.enter('/bulk-actions/new', 'New bulk action')
  await page.getByRole('combobox', { name: 'Saved selection' }).click()
  await page.getByRole('option', { name: 'large-orders' }).click()
  await page.getByText('1 run matches').waitFor()
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByLabel('Command line').getByText('homeport runs cancel --saved large-orders').waitFor()
})

it('the console selects runs by ID, unknown IDs included', async () => {
  const { page } = browser
  await client.trigger({ url: 'http://127.0.0.1:9/named', workflowRunId: 'named', delay: '1h' })
  await browser.enter('/bulk-actions/new', 'New bulk action')
  await page.getByRole('button', { name: 'Enter IDs of runs instead' }).click()
  await page.getByLabel('IDs of runs').fill('wfr_named\nwfr_nobody')
  await page
    .getByRole('status')
    .getByText(/^\d+ runs? match/)
    .waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByRole('link', { name: 'wfr_named' }).waitFor()
  await page.goBack()
  expect(await page.getByLabel('IDs of runs').inputValue()).toBe('wfr_named\nwfr_nobody')
  const many = Array.from({ length: 60 }, (_, index) => `wfr_${index}`).join('\n')
  await page.getByLabel('IDs of runs').fill(many)
  await page.getByText('0 runs match').waitFor()
  await page.goForward()
  await page.getByText('Nothing matches').waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Change the selection' }).click()
  expect(await page.getByLabel('IDs of runs').inputValue()).toBe(many)
})

it('the console shows an error with the text of the server', async () => {
  const { page } = browser
  await browser.enter('/bulk-actions/new?from=2000000000000&to=1900000000000', 'New bulk action')
  await page.getByRole('alert').getByText('`fromDate` (2000000000000) must be before').waitFor()
  await browser.visit('/bulk-actions/bulk_unknown', 'bulk_unknown')
  await page.getByText('Bulk action not found').waitFor()
})

it('the console lists all actions, and the pages fit a phone', async () => {
  const { page } = browser
  await browser.visit('/bulk-actions', 'Bulk actions')
  await page.getByRole('cell', { name: /label nightly/ }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.setViewportSize(PHONE)
  await page.getByRole('link', { name: 'Cancel runs' }).first().click()
  await page.getByText(/Skipped \d+/).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await browser.visit('/runs', 'Runs')
  const cell = page.getByRole('cell').filter({ has: page.getByRole('link', { name: /^wfr_/ }) })
  // The rows render again once their height is known.
  const width = async (): Promise<number> => (await cell.first().boundingBox())?.width ?? 0
  await waitFor(async () => (await width()) > 150, { what: 'a readable name column', deadlineMs: DEADLINE_MS })
  await browser.visit('/bulk-actions/new?label=daily', 'New bulk action')
  await page.getByText('3 runs match').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Check the matches' }).click()
  expect(await problemsOf(page)).toEqual([])
})

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
