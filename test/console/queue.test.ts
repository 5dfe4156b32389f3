import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withoutScheme } from '../../console/src/lib/format.js'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { DEADLINE_MS, heading, loseAnswer, PHONE, type SignedIn, signIn, signInAt } from './support/browser.js'
import './support/patience.js'
import { problemsOf, tooWide } from './support/problems.js'

let homeport: RunningHomeport
let browser: SignedIn
/** Accepts deliveries to `/good`, rejects those to `/bad`. */
const received: string[] = []
const sink = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => {
    body += chunk
  })
  request.on('end', () => {
    received.push(`${request.url} ${body}`)
    response.writeHead(request.url === '/good' ? 200 : 500).end('{"said":"by the sink"}')
  })
})
let sinkUrl = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
  sinkUrl = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`
  homeport = await startHomeport()
  browser = await signIn(homeport)
})

afterAll(() => {
  sink.close()
  sink.closeAllConnections()
})

async function publish(path: string, settings: Readonly<Record<string, string>> = {}) {
  const { page } = browser
  await browser.visit('/messages?publish=true', 'Messages')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Destination').fill(`${sinkUrl}${path}`)
  await dialog.getByLabel('Body').fill('{"order":4711}')
  if (Object.keys(settings).length > 0) await dialog.getByRole('button', { name: 'More settings' }).click()
  for (const [label, value] of Object.entries(settings)) await dialog.getByLabel(label, { exact: true }).fill(value)
  await dialog.getByRole('button', { name: 'Publish the message' }).click()
  await heading(page, /^msg_/).waitFor()
}

it('every page is empty at first, says what to do, and is accessible', async () => {
  for (const [path, title, empty] of [
    ['/messages', 'Messages', 'No messages yet'],
    ['/queues', 'Queues', 'No queues yet'],
    ['/schedules', 'Schedules', 'No schedules yet'],
    ['/url-groups', 'URL groups', 'No URL groups yet'],
    ['/flow-control', 'Flow control', 'No flow-control keys yet'],
    ['/dead-letters', 'Dead letters', 'No dead letters'],
    ['/signing-keys', 'Signing keys', 'Show the keys'],
  ] as const) {
    await browser.visit(path, title)
    await browser.page.getByText(empty).waitFor()
    expect(await problemsOf(browser.page), path).toEqual([])
  }
})

it('the console keeps the error of a load that failed, while the load is repeated', async () => {
  const { page } = browser
  await page.route('**/v2/queues', (request) => request.fulfill({ status: 500, json: { error: 'A fault.' } }))
  await browser.enter('/queues', 'Queues')
  const alert = page.getByRole('alert').getByText('A fault.')
  await alert.waitFor()
  await page.route('**/v2/queues', () => undefined)
  await page.waitForRequest('**/v2/queues')
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
  expect(await alert.isVisible()).toBe(true)
  await page.unrouteAll({ behavior: 'ignoreErrors' })
})

it('publishes a message, and shows its delivery with the response', async () => {
  const { page } = browser
  await publish('/good')
  // The title and the log show it.
  await page.getByText('Delivered', { exact: true }).nth(1).waitFor()
  await page.getByText('by the sink').waitFor()
  expect(received).toContain('/good {"order":4711}')
  await page.getByLabel('Message body').getByText('4711').waitFor()
  expect(await problemsOf(page)).toEqual([])
})

it('publishes a message again with changes, and copies it as a command', async () => {
  const { page } = browser
  await page.getByRole('button', { name: 'Copy as…' }).click()
  await page.getByRole('menuitem', { name: 'TypeScript' }).waitFor()
  await page.getByRole('menuitem', { name: 'curl' }).click()
  await page.getByText('Copied. The token is the variable QSTASH_TOKEN.').waitFor()
  await page.getByRole('button', { name: 'Publish again…' }).click()
  const dialog = page.getByRole('dialog')
  expect(await dialog.getByLabel('Body').inputValue()).toBe('{"order":4711}')
  await dialog.getByLabel('Body').fill('{"order":4712}')
  await dialog.getByRole('button', { name: 'Publish the message' }).click()
  await page.getByLabel('Message body').getByText('4712').waitFor()
  await waitFor(() => received.includes('/good {"order":4712}'), { what: 'the delivery', deadlineMs: DEADLINE_MS })
  await browser.enter('/messages', 'Messages')
  await page.getByRole('button', { name: 'Actions for msg_' }).first().click()
  await page.getByRole('menuitem', { name: 'Copy as CLI command' }).click()
  await page.getByText('Copied. The token is the variable QSTASH_TOKEN.').first().waitFor()
  await page.getByRole('button', { name: 'Actions for msg_' }).first().click()
  await page.getByRole('menuitem', { name: 'Publish again…' }).click()
  await page.getByRole('dialog').getByLabel('Body').getByText('{"order":4712}').waitFor()
})

it('the console validates the form while typing, and shows an error with the text of the server', async () => {
  const { page } = browser
  await browser.enter('/messages?publish=true', 'Messages')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Body').fill('{')
  await dialog.getByText('The body is not valid JSON').waitFor()
  await dialog.getByLabel('Body').fill('')
  await dialog.getByLabel('Destination').fill('no-such-group')
  await dialog.getByRole('button', { name: 'Publish the message' }).click()
  await dialog.getByRole('alert').getByText('no-such-group').waitFor()
  await dialog.getByRole('button', { name: 'More settings' }).click()
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByLabel('Destination').fill('ftp://example.com')
  await dialog.getByRole('button', { name: 'Publish the message' }).click()
  await dialog.getByLabel('Destination').and(page.locator(':focus')).waitFor()
  await dialog.getByLabel('Destination').fill(`${sinkUrl}/good`)
  await dialog.getByLabel('Delay').fill('soon')
  await dialog.getByRole('button', { name: 'Fewer settings' }).click()
  await dialog.getByRole('button', { name: 'Publish the message' }).click()
  await dialog.getByLabel('Delay').and(page.locator(':focus')).waitFor()
})

it('the back button removes a filter', async () => {
  const { page } = browser
  await browser.enter('/messages', 'Messages')
  const label = page.getByRole('textbox', { name: 'Label' })
  await label.fill('nobody')
  await page.getByText('No messages match the filters').waitFor()
  await page.goBack()
  await page.getByText('No messages match the filters').waitFor({ state: 'detached' })
  await waitFor(async () => (await label.inputValue()) === '', {
    what: 'the field to be empty',
    deadlineMs: DEADLINE_MS,
  })
})

it('the console shows why a letter is dead, and sends the whole filtered set again in one action', async () => {
  const { page } = browser
  await publish('/bad', { Retries: '0', Label: 'broken' })
  await page.getByText('Failed', { exact: true }).first().waitFor()
  await browser.visit('/dead-letters?label=broken', 'Dead letters')
  await page.getByRole('button', { name: withoutScheme(`${sinkUrl}/bad`) }).press('Enter')
  await page.getByLabel('Last response').getByText('by the sink').waitFor()
  expect(await problemsOf(page)).toEqual([])
  // Pressed twice, it opens one dialog.
  const remove = page.getByRole('button', { name: 'Delete the dead letter' })
  await remove.evaluate((button: { click(): void }) => void [button.click(), button.click()])
  await page.getByRole('button', { name: 'Go back' }).click()
  await page.getByRole('dialog', { name: 'Delete this dead letter' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const before = received.length
  await page.getByRole('link', { name: 'Send again in bulk…' }).click()
  await page.getByText('1 dead letter matches').waitFor()
  await page.getByRole('button', { name: 'Check the matches' }).click()
  await page.getByText(`${sinkUrl}/bad`).waitFor()
  await page.getByLabel('Delay').fill('soon')
  await page.getByText('Enter a duration').waitFor()
  await page.getByLabel('Delay').fill('1s')
  await page.getByLabel('Retries').fill('0')
  const command = 'homeport queue dlq retry --label broken --delay 1s --retries 0'
  await page.getByLabel('Command line').getByText(command).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByLabel(/^Type/).fill('1')
  await page.getByRole('button', { name: 'Send 1 dead letter again' }).click()
  await page.getByText('Sent again 1').waitFor()
  await waitFor(() => received.length > before, { what: 'the second attempt', deadlineMs: DEADLINE_MS })
})

it('Home counts what happened, and leads to the messages behind a count', async () => {
  const { page } = browser
  await browser.visit('/', 'Home')
  const chart = page.getByRole('group', { name: 'Deliveries' })
  await chart.getByRole('link', { name: /^\d+ delivered$/ }).waitFor()
  await page.getByRole('button', { name: 'Show the numbers' }).press('Enter')
  await page
    .getByRole('table', { name: 'Activity by time' })
    .getByRole('link', { name: /published$/ })
    .first()
    .waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('link', { name: 'Last day' }).click()
  await page.waitForURL(/period=1d/)
  await chart.getByRole('link', { name: /^[1-9]\d* failed$/ }).click()
  await page.waitForURL(/happened=ERROR/)
  await page.getByText('Attempt failed', { exact: true }).first().waitFor()
  expect(await page.getByRole('combobox', { name: 'What happened' }).inputValue()).toBe('Attempt failed')
  expect(await page.getByRole('cell', { name: 'Delivered' }).count()).toBe(0)
})

it('a paused queue holds its messages, and deleting it cancels them', async () => {
  const { page } = browser
  await browser.visit('/queues', 'Queues')
  await page.getByRole('button', { name: 'Create a queue' }).first().click()
  await page.getByLabel('Name').fill('mails')
  await page.getByRole('dialog').getByRole('button', { name: 'Create the queue' }).click()
  await page.getByRole('button', { name: 'Actions for mails' }).click()
  await page.getByRole('menuitem', { name: 'Pause the queue' }).click()
  await page.getByText('Paused', { exact: true }).waitFor()
  // The form refuses the name of an existing queue: creating it again would resume it.
  await page.getByRole('button', { name: 'Create a queue' }).click()
  await page.getByLabel('Name').fill('mails')
  await page.getByText('A queue with this name exists already').waitFor()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await publish('/good', { Queue: 'mails' })
  // Reload the page: the cached list shows no message, and the dialog asks for the name only if there are some.
  await browser.load('/queues', 'Queues')
  await page.getByRole('cell', { name: '1', exact: true }).first().waitFor()
  await page.getByRole('button', { name: 'Actions for mails' }).click()
  await page.getByRole('menuitem', { name: 'Delete the queue' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('mails')
  await page.getByRole('button', { name: 'Delete the queue' }).click()
  await page.getByText('No queues yet').waitFor()
})

it('the console shows the next five fires before and after a schedule is created', async () => {
  const { page } = browser
  await browser.visit('/schedules', 'Schedules')
  await page.getByRole('button', { name: 'Create a schedule' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Destination').fill(`${sinkUrl}/good`)
  await dialog.getByLabel('Cron expression').fill('99 * * * *')
  await dialog.getByText('Next five fires').waitFor({ state: 'detached' })
  await dialog.getByLabel('Cron expression').fill('0 3 * * *')
  // The expression looks like code, its label like every other.
  const fonts =
    "new Set([...document.querySelectorAll('label')].map((label) => getComputedStyle(label).fontFamily)).size"
  expect(await page.evaluate(fonts)).toBe(1)
  expect(await dialog.getByRole('listitem').count()).toBe(5)
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Create the schedule' }).click()
  await page.getByRole('button', { name: withoutScheme(`${sinkUrl}/good`), exact: true }).click()
  await page.getByRole('dialog').getByText('Next five fires').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Actions for' }).click()
  await page.getByRole('menuitem', { name: 'Delete the schedule' }).click()
  // Meanwhile another tab deletes the schedule.
  const [schedule] = (await homeport.queue('GET', '/v2/schedules')).body as [{ scheduleId: string }]
  await homeport.queue('DELETE', `/v2/schedules/${schedule.scheduleId}`)
  await page.getByRole('button', { name: 'Delete the schedule' }).click()
  await page.getByText('It had already been deleted').waitFor()
  await page.getByText('No schedules yet').waitFor()
})

it('the console adds endpoints to a URL group, and pins a flow-control key', async () => {
  const { page } = browser
  await browser.enter('/url-groups', 'URL groups')
  await page.getByRole('button', { name: 'Create a URL group' }).first().click()
  await page.getByLabel('Group name').fill('orders')
  await page.getByLabel('URL of the first endpoint').fill(`${sinkUrl}/good`)
  await page.getByRole('dialog').getByRole('button', { name: 'Create the URL group' }).click()
  await page.getByRole('cell', { name: `${sinkUrl}/good`, exact: true }).waitFor()
  const add = { endpoints: [{ url: `${sinkUrl}/good` }] }
  await Promise.all(
    Array.from({ length: 60 }, (_, at) => homeport.queue('POST', `/v2/topics/many-${at}/endpoints`, add)),
  )
  await browser.load('/url-groups', 'URL groups')
  await page.getByText('50 of 61 URL groups').waitFor()
  expect(await page.getByRole('table').count()).toBe(50)
  await page.getByLabel('Search by name').fill('many-59')
  await page.getByRole('heading', { name: 'many-59' }).waitFor()
  expect(await page.getByRole('table').count()).toBe(1)
  await browser.visit('/flow-control', 'Flow control')
  await page.getByRole('button', { name: 'Pin a key' }).first().click()
  await page.getByRole('textbox', { name: 'Key', exact: true }).fill('api/v1')
  await page.getByLabel('Parallelism').fill('3')
  await page.getByRole('button', { name: 'Pin the limits' }).click()
  await page.getByText('pinned').waitFor()
  await page.getByRole('button', { name: 'Actions for api/v1' }).click()
  await page.getByRole('menuitem', { name: 'Pause the key' }).click()
  await page.getByText('Paused', { exact: true }).waitFor()
  expect(await problemsOf(page)).toEqual([])
})

it('the console copies also where the browser offers its clipboard only to HTTPS pages', async () => {
  const { page } = browser
  await browser.enter('/signing-keys', 'Signing keys')
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
  await page.getByRole('button', { name: 'Copy Current' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  await page.evaluate('delete navigator.clipboard')
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(homeport.credentials.currentSigningKey)
})

it('an ended session leads to the sign-in page, and back', async () => {
  const { page } = browser
  await browser.load('/signing-keys', 'Signing keys')
  await browser.context.clearCookies()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API keys' }).click()
  await heading(page, 'Sign in').waitFor()
  expect(new URL(page.url()).searchParams.get('next')).toBe('/api-keys')
  await signInAt(page, homeport)
})

it('the pages fit a phone', async () => {
  const { page } = browser
  await page.setViewportSize(PHONE)
  for (const [path, title] of [
    ['/', 'Home'],
    ['/messages', 'Messages'],
    ['/schedules', 'Schedules'],
    ['/url-groups', 'URL groups'],
    ['/flow-control', 'Flow control'],
  ] as const) {
    await browser.visit(path, title)
    expect(await tooWide(page), path).toEqual([])
  }
  const longUrl = `http://127.0.0.1:9/${'a-long-path/'.repeat(40)}`
  await homeport.queue('POST', `/v2/publish/${longUrl}`, undefined, { 'upstash-delay': '1h', 'upstash-retries': '0' })
  await browser.enter('/messages', 'Messages')
  await page.getByRole('link', { name: /a-long-path/ }).waitFor()
  const heights = await page.getByRole('row').evaluateAll((rows) => rows.map((row) => row.clientHeight))
  expect(Math.max(...heights)).toBeLessThan(130)
  await browser.visit('/flow-control', 'Flow control')
  // The name gets more space than the state.
  const widthOf = async (name: string) => (await page.getByRole('columnheader', { name }).boundingBox())?.width ?? 0
  expect(await widthOf('Key')).toBeGreaterThan(await widthOf('State'))
})

it('a message is published once, and a database created once, when the answer is lost and the button pressed again', async () => {
  const { page } = browser
  const pressTwice = async (name: string) => {
    const button = page.getByRole('button', { name })
    await button.click()
    await page.getByRole('dialog').getByRole('alert').getByText('cannot be reached').waitFor()
    await button.click()
  }
  await browser.visit('/messages?publish=true', 'Messages')
  await page.getByRole('combobox', { name: 'Destination' }).fill(`${sinkUrl}/good`)
  await page.getByLabel('Body').fill('"once"')
  await loseAnswer(page, '**/v2/batch')
  await pressTwice('Publish the message')
  await heading(page, /^msg_/).waitFor()
  await page.getByText('Delivered').first().waitFor()
  expect(received.filter((one) => one === '/good "once"')).toHaveLength(1)

  await browser.visit('/databases', 'Databases')
  await page.getByRole('button', { name: 'Create a database' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('once')
  await loseAnswer(page, '**/v2/redis/database')
  await pressTwice('Create the database')
  await heading(page, 'once').waitFor()
  // The dialog is not opened again.
  await page.goBack()
  await heading(page, 'Databases').waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
  const { body } = await homeport.api('GET', '/v2/redis/databases')
  expect((body as { database_name: string }[]).map((one) => one.database_name)).toEqual(['once'])
})

it('an ended session asks for the key where something was typed, and keeps it', async () => {
  const { page } = browser
  await browser.load('/messages?publish=true', 'Messages')
  await page.getByLabel('Body').fill('{"typed": "for long"}')
  await browser.context.clearCookies()
  const question = page.getByRole('dialog', { name: 'Your session has ended' })
  await question.waitFor()
  expect(await problemsOf(page)).toEqual([])
  // Escape must not close the dialog below the question, because that would lose the typed text.
  await page.keyboard.press('Escape')
  await question.getByLabel('API key').first().fill(homeport.credentials.apiKey)
  await page.keyboard.press('Enter')
  await question.waitFor({ state: 'detached' })
  await page.getByRole('combobox', { name: 'Destination' }).fill(`${sinkUrl}/good`)
  await page.getByRole('button', { name: 'Publish the message' }).click()
  await heading(page, /^msg_/).waitFor()
  await page.getByText('for long').waitFor()
})

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
