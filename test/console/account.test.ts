import { join } from 'node:path'
import type { Page, Response as PageResponse } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { openSqlite } from '../../src/base/index.js'
import { MAX_AUDIT_SEARCHED } from '../../src/contract/accounts/audit-limits.js'
import { basicOf, call, type RunningHomeport, startHomeport } from '../support/index.js'
import { heading, PHONE, type SignedIn, signIn, signInAt } from './support/browser.js'
import './support/patience.js'
import { problemsOf } from './support/problems.js'

let homeport: RunningHomeport
let browser: SignedIn

beforeAll(async () => {
  homeport = await startHomeport()
  browser = await signIn(homeport)
})

/** The size of everything that the page has loaded, as sent, in bytes. */
const loadedBytes = async (page: Page): Promise<number> => {
  await page.waitForLoadState('networkidle')
  const sizes = `['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind)).map((entry) => entry.encodedBodySize)`
  return (await page.evaluate<number[]>(sizes)).reduce((sum, size) => sum + size, 0)
}

it('the console loads little before the first page, and sends no request that is refused', async () => {
  const refused: string[] = []
  const note = (response: PageResponse): void => {
    if (response.status() >= 400) refused.push(response.url())
  }
  const visitor = await browser.context.browser()?.newPage()
  if (!visitor) throw new Error('the browser has ended')
  visitor.on('response', note)
  await visitor.goto(`${homeport.apiUrl}/databases`)
  await heading(visitor, 'Sign in').waitFor()
  expect(new URL(visitor.url()).search).toBe('?next=%2Fdatabases')
  expect(await loadedBytes(visitor)).toBeLessThan(150_000)
  await visitor.close()

  const { page } = browser
  page.on('response', note)
  await browser.load('/', 'Home')
  expect(await loadedBytes(page)).toBeLessThan(250_000)
  page.off('response', note)
  expect(refused).toEqual([])
})

it.each([
  ['/', 'Home'],
  ['/databases', 'Databases'],
  ['/databases?create=true', 'Databases'],
  ['/usage', 'Usage and cost'],
  ['/alerts', 'Alerts'],
  ['/team', 'Team'],
  ['/api-keys', 'API keys'],
  ['/queue-tokens', 'Queue tokens'],
  ['/audit', 'Audit log'],
  ['/accounts', 'Accounts'],
  ['/nodes', 'Nodes'],
])('%s is accessible and fits the window', async (path, title) => {
  await browser.visit(path, title)
  expect(await problemsOf(browser.page)).toEqual([])
})

it('the console follows the colour scheme of the system', async () => {
  const { page } = browser
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' })
  }
})

it('the pages fit a phone, where a button opens the navigation', async () => {
  const { page } = browser
  await page.setViewportSize(PHONE)
  await browser.visit('/', 'Home')
  await page.getByRole('button', { name: 'Navigation' }).click()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('status').getByText('API keys', { exact: true }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
})

it('shortcuts focus the search, list the shortcuts, and skip the navigation', async () => {
  const { page } = browser
  await browser.load('/audit', 'Audit log')
  await page.keyboard.press('Tab')
  await page.locator('a:focus').getByText('Skip to content').waitFor()
  await page.keyboard.press('Enter')
  await page.locator('#content:focus').waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  // As typed on a keyboard without a separate key for it.
  await page.keyboard.press('Shift+/')
  await page.locator('input[aria-label="Search the entries"]:focus').waitFor()
})

it('Ctrl K finds pages, databases, identifiers and actions', async () => {
  const { page } = browser
  const database = { database_name: 'orders-eu', platform: 'aws', primary_region: 'us-east-1', plan: 'payg' }
  const { body } = await homeport.api('POST', '/v2/redis/database', database)
  const search = page.getByPlaceholder('Go to a page, a database or an identifier')
  const ask = async (text: string) => {
    await page.keyboard.press('Control+k')
    await search.fill(text)
  }
  await browser.visit('/audit', 'Audit log')
  await ask('')
  expect(await problemsOf(page)).toEqual([])
  await page.keyboard.press('Escape')
  await search.waitFor({ state: 'detached' })

  await ask('letters dead')
  await page.keyboard.press('Enter')
  await heading(page, 'Dead letters').waitFor()
  await ask('ORDERS')
  await page.getByRole('dialog').getByText('orders-eu').waitFor()
  await page.keyboard.press('Enter')
  await heading(page, 'orders-eu').waitFor()
  await ask('wfr_nosuch')
  await page.getByText('Open the run wfr_nosuch').click()
  await page.waitForURL('**/runs/wfr_nosuch')
  await ask('nothing like this')
  await page.getByText('Runs with “nothing like this”').waitFor()
  await page.getByText('Changes with “nothing like this”').click()
  await page.waitForURL(/\/audit\?search=nothing/)
  await page.getByText('No entries match the search').waitFor()
  await page.getByRole('button', { name: 'Search the console' }).click()
  await search.fill('create')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Create a database' }).waitFor()
  await homeport.api('DELETE', `/v2/redis/database/${(body as { database_id: string }).database_id}`)
})

it('the navigation works while the code of a page cannot be loaded, and an upgrade reloads the console once', async () => {
  const page = await browser.context.newPage()
  await page.goto('/')
  await heading(page, 'Home').waitFor()
  let reloads = 0
  page.on('request', (request) => {
    if (request.isNavigationRequest()) reloads++
  })
  const alert = page.getByRole('alert').getByText('The code of this page could not be loaded')
  const link = (name: string) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name })
  await page.route('**/assets/*.js', (route) => route.abort())
  await link('Team').click()
  await alert.waitFor()
  await page.unroute('**/assets/*.js')
  await page.getByRole('button', { name: 'Try again' }).click()
  await heading(page, 'Team').waitFor()
  expect(reloads).toBe(0)

  // The server was upgraded: its page names another script, and the files of the old build are gone.
  await page.route('**/assets/*.js', (route) => (reloads === 0 ? route.abort() : route.continue()))
  await page.route(
    (url) => url.pathname === '/' && reloads === 0,
    (route) =>
      route.fulfill({ contentType: 'text/html', body: '<script type="module" src="/assets/new.js"></script>' }),
  )
  await link('Alerts').click()
  await heading(page, 'Alerts').waitFor()
  expect(reloads).toBe(1)
  await page.close()
})

it('a channel is added, tested and deleted; alerts are silenced and a rule is changed', async () => {
  const { page } = browser
  await browser.enter('/alerts', 'Alerts')
  await page.getByRole('button', { name: 'Add a channel' }).first().click()
  await page.getByLabel('Name').fill('on call')
  await page.getByLabel('URL').fill('http://127.0.0.1:9/alerts')
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Add the channel' }).click()
  await page.getByRole('button', { name: 'Actions for on call' }).click()
  await page.getByRole('menuitem', { name: 'Send a test' }).click()
  await heading(page, /^msg_/).waitFor()
  await browser.visit('/alerts', 'Alerts')
  await page.getByRole('button', { name: 'Actions for on call' }).click()
  await page.getByRole('menuitem', { name: 'Edit the channel' }).click()
  await page.getByLabel('Group for (minutes)').fill('60')
  await page.getByLabel('Also notify when a state ends').uncheck()
  await page.getByRole('button', { name: 'Change the channel' }).click()
  await page.getByText('The channel was changed.').waitFor()
  const { body } = await homeport.api('GET', '/v2/alerts/channels')
  expect(body).toMatchObject([{ name: 'on call', group_minutes: 60, send_resolved: false, enabled: true, kinds: [] }])
  await page.getByRole('button', { name: 'Actions for on call' }).click()
  await page.getByRole('menuitem', { name: 'Turn notifications off' }).click()
  await page.getByRole('cell', { name: 'Off', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Actions for on call' }).click()
  await page.getByRole('menuitem', { name: 'Delete the channel' }).click()
  await page.getByRole('button', { name: 'Delete the channel' }).click()
  await page.getByText('No channels yet').waitFor()
  await page.getByRole('button', { name: 'Silence alerts' }).click()
  await page.getByLabel('Reason').fill('known')
  await page.getByRole('button', { name: 'Silence the alerts' }).click()
  await page.getByRole('button', { name: 'End the silence of all rules' }).click()
  await page.getByText('Nothing is silenced').waitFor()
  await page.getByRole('button', { name: 'Change the threshold of budget' }).click()
  await page.getByLabel('Threshold (%)').fill('50')
  await page.getByRole('button', { name: 'Change the threshold', exact: true }).click()
  await page.getByText('50 %').waitFor()
})

it('the operator sees that the server is alone', async () => {
  await browser.visit('/nodes', 'Nodes')
  await browser.page.getByText('This server is alone').waitFor()
})

it('the operator creates an account, limits, suspends, resumes and deletes it', async () => {
  const { page } = browser
  await browser.visit('/accounts', 'Accounts')
  await page.getByRole('button', { name: 'Create an account' }).click()
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Most databases').fill('3')
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Create the account' }).click()
  const key = (await page.getByLabel('API key', { exact: true }).textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied them' }).click()
  await page.getByRole('cell', { name: '0 of 3' }).waitFor()
  const choose = async (action: string) => {
    await page.getByRole('button', { name: 'Actions for ada@example.com' }).click()
    await page.getByRole('menuitem', { name: action }).click()
  }
  await choose('Change the limits')
  await page.getByLabel('Most messages a day').fill('250')
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Change the limits' }).click()
  await page.getByRole('cell', { name: '250' }).waitFor()
  await choose('Suspend the account')
  await page.getByRole('button', { name: 'Suspend the account' }).click()
  await page.getByText('Suspended', { exact: true }).waitFor()
  const authorization = basicOf('ada@example.com', key)
  const ask = async () => (await call(`${homeport.apiUrl}/v2/redis/databases`, { headers: { authorization } })).status
  expect(await ask()).toBe(403)
  expect(await problemsOf(page)).toEqual([])
  await choose('Resume the account')
  await page.getByText('Suspended', { exact: true }).waitFor({ state: 'detached' })
  expect(await ask()).toBe(200)
  await choose('Delete the account')
  expect(await page.getByRole('button', { name: 'Delete the account' }).isDisabled()).toBe(true)
  await page.getByLabel('Type ada@example.com to continue').fill('ada@example.com')
  await page.getByRole('button', { name: 'Delete the account' }).click()
  await page.getByText('ada@example.com').first().waitFor({ state: 'detached' })
  expect(await ask()).toBe(401)
})

it('the console creates an API key, shows it once, and deletes it after a confirmation', async () => {
  const { page } = browser
  await browser.visit('/api-keys', 'API keys')
  await page.getByRole('button', { name: 'Create a key' }).click()
  await page.getByLabel('Name').fill('deploy')
  await page.getByRole('button', { name: 'Create the key' }).click()
  const secret = (await page.getByLabel('The new API key').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await expect(isAccepted(secret)).resolves.toBe(true)
  await page.getByRole('button', { name: 'Delete deploy' }).click()
  await page.getByRole('button', { name: 'Delete the key' }).click()
  await page.getByRole('button', { name: 'Delete deploy' }).waitFor({ state: 'detached' })
  await expect(isAccepted(secret)).resolves.toBe(false)
})

it('a member of a team gets a key from the page Team, which has the rights of the role', async () => {
  const { page } = browser
  await browser.visit('/team', 'Team')
  await page.getByRole('button', { name: 'Create a team' }).first().click()
  await page.getByLabel('Name').fill('crew')
  await page.getByRole('button', { name: 'Create the team' }).click()
  await page.getByRole('button', { name: 'Add a member' }).click()
  await page.getByLabel('E-mail').fill('bob@example.com')
  await page.getByRole('combobox', { name: 'Role' }).click()
  await page.getByRole('option', { name: /^finance/ }).click()
  await page.getByRole('button', { name: 'Add the member' }).click()
  await page.getByRole('button', { name: 'Create a key bob@example.com' }).click()
  await page.getByText('A key of the team crew').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByLabel('Name').fill('bobs')
  await page.getByRole('button', { name: 'Create the key' }).click()
  const authorization = basicOf('bob@example.com', (await page.getByLabel('The new API key').textContent()) ?? '')
  await page.getByRole('button', { name: 'I have copied it' }).click()
  const ask = (method: string) => call(`${homeport.apiUrl}/v2/apikeys`, { method, headers: { authorization } })
  expect([(await ask('POST')).status, (await ask('GET')).status]).toEqual([403, 200])
})

it('a queue token is made, rotated with both secrets shown once, and deleted after a question', async () => {
  const { page } = browser
  await browser.visit('/queue-tokens', 'Queue tokens')
  await page.getByRole('button', { name: 'Create a token' }).first().click()
  await page.getByLabel('Name').fill('shop')
  await page.getByRole('button', { name: 'Create the token' }).click()
  const first = (await page.getByLabel('The new queue token').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.getByRole('button', { name: 'Rotate shop' }).click()
  await page.getByRole('button', { name: 'Rotate the token' }).click()
  const second = (await page.getByLabel('The new queue token').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have copied it' }).click()
  const publish = async (token: string) => (await homeportPublish(token)).status
  expect([first === second, await publish(first), await publish(second)]).toEqual([false, 200, 200])
  await page.getByRole('button', { name: 'Delete shop' }).click()
  await page.getByRole('button', { name: 'Delete the token' }).click()
  await page.getByRole('button', { name: 'Delete shop' }).waitFor({ state: 'detached' })
  expect([await publish(first), await publish(second)]).toEqual([401, 401])
})

const homeportPublish = (token: string): Promise<Response> =>
  fetch(`${homeport.queueUrl}/v2/publish/https://example.invalid/x`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'upstash-delay': '1d' },
  })

async function isAccepted(apiKey: string): Promise<boolean> {
  const authorization = basicOf(homeport.credentials.email, apiKey)
  return (await fetch(`${homeport.apiUrl}/v2/teams`, { headers: { authorization } })).ok
}

it('the console works when the browser reports that it is offline', async () => {
  const { page } = browser
  await browser.enter('/signing-keys', 'Signing keys')
  await page.evaluate("dispatchEvent(new Event('offline'))")
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('cell', { name: 'default', exact: true }).waitFor()
})

it('the console warns that the server does not respond, with the age of the data', async () => {
  const { page } = browser
  await browser.enter('/', 'Home')
  await page.getByRole('heading', { name: 'Health' }).waitFor()
  await page.route('**/v2/**', (request) => request.fulfill({ status: 503, json: { error: 'Starting.' } }))
  await page.getByRole('alert').getByText('The server does not respond').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.route('**/v2/**', (request) => request.fulfill({ status: 500, json: { error: 'A fault.' } }))
  await page.getByRole('alert').getByText('A fault. This page shows data from').waitFor()
  await page.unroute('**/v2/**')
  await page.getByRole('alert').waitFor({ state: 'detached' })
})

it('the console searches the audit log on the server, and continues where a search has reached its limit', async () => {
  const { page } = browser
  await browser.enter('/audit', 'Audit log')
  await page.getByLabel('Search the entries').fill('nothing has this')
  await page.getByText('No entries match the search').waitFor()
  await homeport.api('POST', '/v2/apikeys', { name: 'searched' })
  addAuditEntries(2 * MAX_AUDIT_SEARCHED)
  await page.getByLabel('Search the entries').fill('CREATE api key')
  await page.getByText('0 entries found so far; older ones are not searched yet').waitFor()
  await page.getByRole('button', { name: 'Search further from Jan 2, 2030' }).click()
  await page.getByRole('button', { name: 'Search to the next match' }).click()
  await page.getByRole('button', { name: 'Create API Key' }).first().waitFor()
})

/** Entries of the operator with the time 2030-01-02, as if they had made this many changes. */
function addAuditEntries(count: number): void {
  const file = openSqlite(join(homeport.place.dataDir, 'homeport.sqlite'))
  file.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO audit_log (log_id, account_id, actor, source, action, entity, details, ip, at)
    SELECT 'seeded_' || i, account_id, email, 'SYSTEM', 'Rename Database', '', '{}', '', ${Date.UTC(2030, 0, 2, 12)}
    FROM n, (SELECT account_id, email FROM accounts ORDER BY created_at LIMIT 1)`)
  file.close()
}

it('signing out ends the session, and signing in leads back to the same page', async () => {
  const { page } = browser
  await browser.enter('/audit', 'Audit log')
  await page.getByRole('button', { name: 'Account', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await heading(page, 'Sign in').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.goto('/audit')
  await page.getByLabel('E-mail').fill(homeport.credentials.email)
  await page.getByLabel('API key').first().fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('API key is wrong').waitFor()
  await page.getByLabel('API key').first().fill(homeport.credentials.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading(page, 'Audit log').waitFor()
})

it('the console shows nothing of one account while another tab has signed in to another one', async () => {
  const email = 'beside@example.com'
  const { body } = await homeport.api('POST', '/v2/accounts', { email })
  await browser.load('/api-keys', 'API keys')
  const beside = await browser.context.newPage()
  const reloaded = browser.page.waitForEvent('load')
  await browser.context.clearCookies()
  const apiKey = (body as { api_key: string }).api_key
  await signInAt(beside, { ...homeport, credentials: { ...homeport.credentials, email, apiKey } })
  await reloaded
  await browser.page.getByRole('button', { name: 'Account' }).click()
  await browser.page.getByText(email).waitFor()
  await browser.context.clearCookies()
  await signInAt(browser.page, homeport)
  await beside.close()
})

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
