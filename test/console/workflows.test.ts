import { Client } from '@upstash/workflow'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withoutScheme } from '../../console/src/lib/format.js'
import { type App, startApp } from '../../src/workflow/testing/harness.js'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { heading, newContext, PHONE, type SignedIn, signIn } from './support/browser.js'
import { KeyboardUser } from './support/keyboard.js'
import {
  cancelsAndUndoes,
  deletesKeys,
  pausesAndRestarts,
  signsIn,
  usesThePalette,
} from './support/keyboard-journey.js'
import './support/patience.js'
import { problemsOf } from './support/problems.js'

let homeport: RunningHomeport
let browser: SignedIn
let client: Client
let app: App
/** Whether the endpoint `/fragile` works. */
let isFixed = false

beforeAll(async () => {
  homeport = await startHomeport()
  const { queueToken: token, currentSigningKey: current, nextSigningKey: next } = homeport.credentials
  client = new Client({ baseUrl: homeport.queueUrl, token })
  app = await startApp({ url: homeport.queueUrl, token, signingKeys: () => ({ current, next }) }, ROUTES)
  browser = await signIn(homeport)
})

afterAll(() => app?.close())

const ROUTES: Parameters<typeof startApp>[1] = {
  '/order': {
    route: async (context) => {
      const order = await context.run('reserve', () => ({ reserved: context.requestPayload }))
      await context.sleep('cool down', '1s')
      const both = await Promise.all([context.run('charge', () => 'charged'), context.run('pack', () => 'packed')])
      return { order, both }
    },
  },
  '/approval': {
    route: async (context) => {
      const { eventData } = await context.waitForEvent('approved', 'order 7/approved', { timeout: '1h' })
      return eventData
    },
  },
  '/fragile': {
    route: async (context) => {
      await context.run('before', () => 'kept')
      return await context.run('breaks', () => {
        if (!isFixed) throw new Error('the warehouse is closed')
        return 'mended'
      })
    },
  },
  '/broken': {
    route: async () => {
      throw new Error('never works')
    },
  },
  '/kept': {
    route: async (context) => {
      await context.run('first', () => 'kept')
      await context.sleep('long', '1h')
    },
  },
  '/parent': {
    route: async (context) => {
      await context.sleep('long', '1h')
    },
  },
}

const ended = (title: string) => browser.page.getByText(title, { exact: true }).first().waitFor()

it('every page is empty at first, says what to do, and is accessible', async () => {
  for (const [path, title, empty] of [
    ['/runs', 'Runs', 'No runs yet'],
    ['/runs/dead-letters', 'Failed runs', 'No failed runs'],
    ['/events', 'Events', 'No run waits for an event'],
    ['/events?event=never', 'Events', 'No runs wait for this event'],
    ['/runs/wfr_unknown', 'wfr_unknown', 'Run not found'],
  ] as const) {
    await browser.visit(path, title)
    await browser.page.getByText(empty).waitFor()
    if (!path.includes('_') && !path.includes('?')) expect(await problemsOf(browser.page), path).toEqual([])
  }
})

it('the console triggers a run from the form and follows it to its result', async () => {
  const { page } = browser
  await browser.visit('/runs', 'Runs')
  await page.getByRole('button', { name: 'Trigger a run' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Workflow URL').fill('example.com')
  await dialog.getByText('Enter a URL that begins with http').waitFor()
  await dialog.getByLabel('Workflow URL').fill(`${app.url}/order`)
  await dialog.getByLabel('Payload').fill('{"order":4711}')
  await dialog.getByLabel('Label', { exact: true }).fill('shop')
  await dialog.getByRole('button', { name: 'More settings' }).click()
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Trigger the run' }).click()
  await heading(page, /^wfr_/).waitFor()
  await page.getByRole('group', { name: '2 branches in parallel' }).getByRole('button', { name: 'pack' }).waitFor()
  await ended('Succeeded')
  await page.getByLabel('Result of the run').getByText('packed').waitFor()
})

it('a step opens to its input and output', async () => {
  const { page } = browser
  await page.getByRole('button', { name: 'Triggered' }).click()
  await page.getByRole('region', { name: 'Payload' }).getByText('4711').waitFor()
  await page.getByRole('button', { name: 'reserve' }).press('Enter')
  await page.getByRole('region', { name: 'Result', exact: true }).getByText('reserved').waitFor()
  // A tooltip below the pointer would be checked as well.
  await page.mouse.move(0, 0)
  expect(await problemsOf(page)).toEqual([])
})

it('a waiting run shows its event, and continues when the event is sent from its page', async () => {
  const { page } = browser
  const { workflowRunId } = await client.trigger({ url: `${app.url}/approval`, label: 'waits' })
  await browser.visit(`/runs/${workflowRunId}`, workflowRunId)
  await page.getByText('Waiting for an event').waitFor()
  await page.getByText('Waiting for the event "order 7/approved" since').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await browser.visit('/events', 'Events')
  await page.getByRole('link', { name: 'order 7/approved' }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('link', { name: 'order 7/approved' }).click()
  await page.getByRole('link', { name: workflowRunId }).click()
  await page.getByRole('button', { name: 'Send the event' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Event data').fill('{"by":"Ada"}')
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Send the event' }).click()
  await ended('Succeeded')
  await page.getByLabel('Result of the run').getByText('Ada').waitFor()
})

it('the console lists the events that came, also those for which no run waited', async () => {
  const { page } = browser
  await client.notify({ eventId: 'too late', eventData: 'nobody gets it' })
  await browser.visit('/events', 'Events')
  const came = page.getByRole('table', { name: 'Received events' })
  await came.getByText('No run waited').waitFor()
  await came.getByText('1 run continued').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('combobox', { name: 'What the event did' }).click()
  await page.getByRole('option', { name: 'No run waited' }).click()
  await page.waitForURL(/outcome=nobody/)
  await came.getByRole('link', { name: 'order 7/approved' }).waitFor({ state: 'detached' })
  expect(await came.getByRole('row').count()).toBe(2)
  await came.getByRole('link', { name: 'too late' }).click()
  await page.getByText('Received events “too late”').waitFor()
})

it('a failed run shows why, and resumes at the failed step', async () => {
  const { page } = browser
  const { workflowRunId } = await client.trigger({ url: `${app.url}/fragile`, retries: 0, label: 'broken' })
  await browser.visit(`/runs/${workflowRunId}`, workflowRunId)
  await page.getByText('failed with status 500: the warehouse is closed').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await browser.visit('/runs/dead-letters?label=broken', 'Failed runs')
  await page.getByRole('cell', { name: withoutScheme(`${app.url}/fragile`), exact: true }).click()
  await page.getByRole('dialog').getByLabel('Last response').getByText('the warehouse is closed').waitFor()
  expect(await problemsOf(page)).toEqual([])
  isFixed = true
  await page.getByRole('button', { name: 'Resume at the failed step' }).click()
  await ended('Succeeded')
  await page.getByLabel('Result of the run').getByText('mended').waitFor()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).not.toBe(workflowRunId)
})

it('the console restarts a run from a step with another result, and triggers it again with another payload', async () => {
  const { page } = browser
  const { workflowRunId } = await client.trigger({ url: `${app.url}/order`, body: '"first"', label: 'again' })
  await browser.visit(`/runs/${workflowRunId}`, workflowRunId)
  await ended('Succeeded')
  await page.getByRole('button', { name: 'pack' }).click()
  await page.getByRole('button', { name: 'Restart from here…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Results to replace').click()
  await page.getByRole('option', { name: '3: charge' }).click()
  await dialog.getByLabel('Result of charge').fill('"refunded"')
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Start the new run' }).click()
  await page.getByLabel('Result of the run').getByText('refunded').waitFor()
  await page.getByText(', step 4').waitFor()
  await page.getByRole('button', { name: 'Trigger again…' }).click()
  await dialog.getByLabel('Payload').fill('"second"')
  await dialog.getByRole('button', { name: 'Trigger the run' }).click()
  await page.getByLabel('Result of the run').getByText('second').waitFor()
  await browser.visit('/runs?label=again', 'Runs')
  await page.getByRole('button', { name: `Actions for ${workflowRunId}` }).click()
  await page.getByRole('menuitem', { name: 'Copy as curl' }).waitFor()
  await page.getByRole('menuitem', { name: 'Trigger again…' }).click()
  await dialog.getByLabel('Payload').getByText('"first"').waitFor()
})

it('the console restarts failed runs in bulk', async () => {
  const { page } = browser
  await client.trigger([1, 2].map(() => ({ url: `${app.url}/broken`, retries: 0, label: 'both' })))
  await waitFor(async () => (await client.dlq.list({ filter: { label: 'both' } })).messages.length === 2, {
    what: 'both to have failed',
  })
  await browser.enter('/runs/dead-letters?label=both', 'Failed runs')
  await page.getByRole('link', { name: 'Restart in bulk…' }).click()
  await page.getByText('2 failed runs match').waitFor()
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByLabel('Command line').getByText('homeport runs restart --label both').waitFor()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByLabel(/^Type/).fill('2')
  await page.getByRole('button', { name: 'Restart 2 failed runs' }).click()
  await page.getByText('Restarted 2').waitFor()
})

it('the console cancels a run after a confirmation', async () => {
  const { page } = browser
  const { workflowRunId } = await client.trigger({ url: `${app.url}/parent`, label: 'sleeps' })
  await browser.visit(`/runs/${workflowRunId}`, workflowRunId)
  await page.getByText('Sleeping until').waitFor()
  await page.getByRole('button', { name: 'Cancel the run' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click()
  await ended('Cancelled')
})

it('the console pauses a workflow: runs that begin wait until it is resumed', async () => {
  const { page } = browser
  const { workflowRunId: first } = await client.trigger({ url: `${app.url}/parent`, label: 'held' })
  await browser.visit('/runs?label=held', 'Runs')
  const actions = (id: string) =>
    page
      .getByRole('row')
      .filter({ hasText: id })
      .getByRole('button', { name: /^Actions/ })
  await actions(first).click()
  const pause = page.getByRole('menuitem', { name: 'Pause the workflow…' })
  await pause.waitFor()
  expect(await problemsOf(page)).toEqual([])
  await pause.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Pause the workflow' }).click()
  const paused = page.getByRole('alert').filter({ hasText: 'Paused workflows' })
  await paused
    .getByText(withoutScheme(`${app.url}/parent`))
    .first()
    .waitFor()
  const { workflowRunId: second } = await client.trigger({ url: `${app.url}/parent`, label: 'held' })
  await page.getByRole('row').filter({ hasText: second }).getByText('Paused').waitFor()
  // A tooltip is part of the page, too.
  await page
    .getByRole('button', { name: 'API documentation' })
    .or(page.getByRole('link', { name: 'API documentation' }))
    .hover()
  await page.getByRole('tooltip').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await paused.getByRole('button', { name: /^Resume/ }).click()
  await paused.waitFor({ state: 'detached' })
  await page.getByRole('row').filter({ hasText: second }).getByText('Sleeping').waitFor()
})

it('filters are in the URL, and new runs appear without a reload', async () => {
  const { page } = browser
  await browser.enter('/runs?label=live', 'Runs')
  await page.getByText('No runs match the filters').waitFor()
  const { workflowRunId } = await client.trigger({ url: `${app.url}/parent`, label: 'live' })
  await page.getByRole('link', { name: workflowRunId }).waitFor()
  expect(await page.getByRole('table', { name: 'Runs' }).getByRole('row').count()).toBe(2)
  await page.getByLabel('Label').fill('')
  await page.getByLabel('Search ids, URLs, errors').fill(workflowRunId.slice(6, 20).toUpperCase())
  await page.waitForURL(/search=/)
  await page.getByRole('link', { name: workflowRunId }).waitFor()
  expect(await page.getByRole('table', { name: 'Runs' }).getByRole('row').count()).toBe(2)
  await page.getByLabel('Search ids, URLs, errors').fill('')
  await page.getByRole('combobox', { name: 'State' }).click()
  await page.getByRole('option', { name: 'Succeeded' }).click()
  await page.waitForURL(/state=RUN_SUCCESS/)
  await page.getByRole('link', { name: workflowRunId }).waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'Succeeded' }).first().waitFor()
  expect(await problemsOf(page)).toEqual([])
})

it('runs are sorted by columns, and filtered by what they wait for', async () => {
  const { page } = browser
  await browser.enter('/runs', 'Runs')
  for (const title of ['Workflow', 'Took']) {
    const column = page.getByRole('columnheader', { name: title, exact: true })
    await column.getByRole('button').click()
    await waitFor(async () => (await column.getAttribute('aria-sort')) !== 'none', { what: `runs by ${title}` })
  }
  await page.waitForURL(/sort=-duration/)
  // The server sorts, so the longest run is first although others are newer.
  const rows = page.getByRole('table', { name: 'Runs' }).getByRole('row')
  await page.getByRole('combobox', { name: 'Order' }).click()
  await page.getByRole('option', { name: 'Last ended first' }).click()
  await page.waitForURL(/sort=-ended/)
  await page.getByRole('columnheader', { name: 'Ended' }).waitFor()
  await waitFor(async () => !/Active/.test((await rows.nth(1).textContent()) ?? 'Active'), {
    what: 'an ended run first',
  })
  await page.getByRole('button', { name: 'More filters' }).click()
  await page.getByRole('combobox', { name: 'Waits for' }).click()
  await page.getByRole('option', { name: 'Sleeping' }).click()
  await page.waitForURL(/waits=sleeping/)
  await page.getByRole('cell', { name: 'Succeeded' }).waitFor({ state: 'detached' })
  await page.getByRole('cell', { name: 'Sleeping' }).first().waitFor()
  expect(await problemsOf(page)).toEqual([])
})

it('Home leads to the runs that ended in a time', async () => {
  const { page } = browser
  await browser.load('/', 'Home')
  const chart = page.getByRole('group', { name: 'Runs ended' })
  expect(await chart.getByRole('img').getAttribute('aria-label')).toMatch(
    /^Runs ended: [1-9]\d* succeeded, [1-9]\d* failed/,
  )
  await chart.getByRole('link', { name: /^[1-9]\d* cancelled$/ }).click()
  await page.waitForURL(/endedFrom=/)
  await page.getByRole('cell', { name: 'Cancelled' }).waitFor()
  expect(await page.getByRole('table', { name: 'Runs' }).getByRole('row').count()).toBe(2)
})

it('selected runs and the whole filtered set lead to the wizard', async () => {
  const { page } = browser
  await browser.enter('/runs?label=live', 'Runs')
  await page.getByRole('checkbox', { name: /^Select wfr_/ }).check()
  await page.getByText('1 run selected').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('link', { name: 'Cancel all matching runs…' }).click()
  await heading(page, 'New bulk action').waitFor()
  expect(await page.getByLabel('Label').inputValue()).toBe('live')
  await page.getByText('1 run matches').waitFor()
})

it('a keyboard is enough to sign in, and to work with databases, messages and runs', async () => {
  const context = await newContext(browser.context.browser(), homeport.apiUrl)
  const page = await context.newPage()
  const user = new KeyboardUser(page)
  await signsIn(page, user, homeport)
  await deletesKeys(page, user, homeport)
  await cancelsAndUndoes(page, user, `${app.url}/later`)
  const { workflowRunId } = await client.trigger({ url: `${app.url}/kept` })
  await pausesAndRestarts(page, user, workflowRunId)
  await usesThePalette(page, user)
  await context.close()
})

it('the pages fit a phone', async () => {
  const { page } = browser
  await page.setViewportSize(PHONE)
  await browser.enter('/runs', 'Runs')
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('link', { name: /^wfr_/ }).last().click()
  await page.getByRole('button', { name: 'Triggered' }).click()
  expect(await problemsOf(page)).toEqual([])
})

it('the event field keeps the focus during pauses in typing', async () => {
  const { page } = browser
  await browser.visit('/events', 'Events')
  await page.getByLabel('Event ID').pressSequentially('order')
  await page.waitForURL(/event=order/)
  await page.keyboard.type('-7/approved')
  await page.waitForURL(/approved/)
  expect(await page.getByLabel('Event ID').inputValue()).toBe('order-7/approved')
})

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
