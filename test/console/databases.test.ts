import { beforeAll, describe, expect, it } from 'vitest'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import {
  DEADLINE_MS,
  DESKTOP,
  follow,
  heading,
  newContext,
  PHONE,
  type SignedIn,
  signIn,
  signInAt,
} from './support/browser.js'
import './support/patience.js'
import { problemsOf, tooWide } from './support/problems.js'

let homeport: RunningHomeport
let browser: SignedIn
/** The path of the database's page. */
let place = ''

beforeAll(async () => {
  homeport = await startHomeport()
  browser = await signIn(homeport)
})

/** The record of the database that the first test created. */
async function record(): Promise<{ rest_url: string; rest_token: string; database_name: string; eviction: boolean }> {
  const { body } = await homeport.api('GET', `/v2/redis/database/${place.split('/').at(-1)}`)
  return body as Awaited<ReturnType<typeof record>>
}

/** The reply to a command that is sent with a token: the result or the error. */
async function replyTo(bearer: string, line: readonly string[]): Promise<unknown> {
  const { rest_url } = await record()
  const headers = { authorization: `Bearer ${bearer}` }
  const response = await fetch(rest_url, { method: 'POST', headers, body: JSON.stringify(line) })
  const answer = (await response.json()) as { result?: unknown; error?: unknown }
  return answer.error ?? answer.result
}

const command = async (...line: string[]): Promise<unknown> => replyTo((await record()).rest_token, line)

/** The REST token of the user that a test creates. */
let token = ''

const asUser = (...line: string[]): Promise<unknown> => replyTo(token, line)

describe('a user who has not read the documentation', () => {
  it('creates a database, with validation while typing', async () => {
    const { page } = browser
    await browser.visit('/databases', 'Databases')
    await page.getByText('No databases yet').waitFor()
    await page.getByRole('button', { name: 'Create a database' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('x')
    await dialog.getByLabel('Name').fill('')
    await dialog.getByText('Enter a name for the database').waitFor()
    await dialog.getByLabel('Name').fill('shop')
    await dialog.getByRole('button', { name: 'Create the database' }).click()
    await heading(page, 'shop').waitFor()
    place = new URL(page.url()).pathname
    expect(await command('PING')).toBe('PONG')
  })

  it('copies code that connects, and shows secrets only on demand', async () => {
    const { page } = browser
    await page.getByRole('tab', { name: '.env' }).click()
    const code = page.getByLabel('Connect with .env')
    const { rest_token } = await record()
    expect(await code.textContent()).not.toContain(rest_token)
    await page.getByRole('button', { name: 'Copy Connect with .env' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain(`UPSTASH_REDIS_REST_TOKEN="${rest_token}"`)
    await page.getByRole('button', { name: 'Show secrets' }).click()
    expect(await code.textContent()).toContain(rest_token)
  })

  it('creates a key in the data browser, edits it, and sets its expiry', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=data`, 'shop')
    await page.getByText('The database is empty').waitFor()
    await page.getByRole('button', { name: 'Create a key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Key').fill('greeting')
    await dialog.getByLabel('Value').fill('{"hello":"world"}')
    await dialog.getByRole('button', { name: 'Create the key' }).click()
    await page.getByLabel('Value').getByText('"hello": "world"').waitFor()
    const edit = async (text: string) => {
      await page.getByRole('button', { name: 'Edit', exact: true }).click()
      await page.getByLabel('Value').fill(text)
      await page.getByRole('button', { name: 'Save' }).click()
    }
    await edit('hello')
    await page.getByLabel('Value').getByText('hello', { exact: true }).waitFor()
    await command('SET', 'greeting', 'newer')
    await edit('older')
    await page.getByText('the value has changed since it was read').waitFor()
    expect(await problemsOf(page)).toEqual([])
    expect(await command('GETSET', 'greeting', 'hello')).toBe('newer')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'does not expire' }).click()
    await page.getByLabel('Expires in seconds').fill('1000')
    await page.getByRole('button', { name: 'Set', exact: true }).click()
    await page.getByRole('button', { name: /expires in 16m/ }).waitFor()
    expect(await command('GET', 'greeting')).toBe('hello')
    expect(await problemsOf(page)).toEqual([])
  })

  it('sees the usage change while commands are sent', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=usage`, 'shop')
    const chart = page.getByRole('img', { name: /^Keys, now/ })
    await chart.waitFor()
    const requests = page.getByText('Requests this month').locator('..')
    const before = await requests.textContent()
    await Promise.all(Array.from({ length: 50 }, (_, i) => command('SET', `session:${i}`, 'x')))
    await waitFor(async () => (await requests.textContent()) !== before, {
      what: 'the figure to move',
      deadlineMs: DEADLINE_MS,
      everyMs: 500,
    })
    await page.getByRole('cell', { name: 'SET', exact: true }).waitFor()
    expect(await problemsOf(page)).toEqual([])
  })
})

describe('the data browser', () => {
  it.each([
    ['hash', ['HSET', 'a:hash', 'field', 'value'], 'field', ['other', '1'], 'HLEN'],
    ['list', ['RPUSH', 'a:list', 'first'], 'first', ['second'], 'LLEN'],
    ['set', ['SADD', 'a:set', 'member'], 'member', ['other'], 'SCARD'],
    ['zset', ['ZADD', 'a:zset', '7', 'player'], 'player', ['9', 'other'], 'ZCARD'],
    ['stream', ['XADD', 'a:stream', '*', 'level', 'info'], 'level=info', ['level=warn'], 'XLEN'],
  ])('shows, adds to and removes from a %s', async (type, line, shown, added, count) => {
    const { page } = browser
    await command(...line)
    await browser.enter(`${place}?tab=data`, 'shop')
    await page.getByLabel('Pattern').fill(`a:${type}`)
    await page.getByRole('button', { name: `a:${type}`, exact: true }).click()
    await page.getByRole('cell', { name: shown }).first().waitFor()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const inputs = page.getByRole('dialog').getByRole('textbox')
    for (const [index, value] of added.entries()) await inputs.nth(index).fill(value)
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    await page.getByText('2 of 2 elements read').waitFor()
    await page
      .getByRole('button', { name: /^Remove / })
      .first()
      .click()
    await page.getByRole('button', { name: 'Remove the element' }).click()
    await page.getByText('1 of 1 element read').waitFor()
    expect(await command(count, `a:${type}`)).toBe(1)
  })

  it('removes nothing from a list that changed since it was read', async () => {
    const { page } = browser
    await command('RPUSH', 'moved', 'a', 'b')
    await browser.enter(`${place}?tab=data`, 'shop')
    await page.getByLabel('Pattern').fill('moved')
    await page.getByRole('button', { name: 'moved', exact: true }).click()
    await page.getByRole('button', { name: 'Remove 0' }).click()
    await command('LPUSH', 'moved', 'new')
    await page.getByRole('button', { name: 'Remove the element' }).click()
    await page.getByRole('alert').getByText('the list has changed').waitFor()
    expect(await command('LRANGE', 'moved', '0', '-1')).toEqual(['new', 'a', 'b'])
    await page.keyboard.press('Escape')
    await command('DEL', 'moved')
  })

  it('shows binary values as a hex dump', async () => {
    const { page } = browser
    await command('SETBIT', 'bits', '0', '1').catch(() => undefined)
    const { rest_url, rest_token } = await record()
    await fetch(`${rest_url}/set/bits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rest_token}` },
      body: new Uint8Array([0, 255, 254, 65]),
    })
    await browser.enter(`${place}?tab=data`, 'shop')
    await page.getByLabel('Pattern').fill('bits')
    await page.getByRole('button', { name: 'bits', exact: true }).click()
    await page
      .getByLabel('Value')
      .getByText(/^000000 {2}00 ff fe 41/)
      .waitFor()
  })

  it('deletes by prefix exactly the counted keys, after the number was typed', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=data`, 'shop')
    await page.getByRole('button', { name: 'Actions for the keys' }).click()
    await page.getByRole('menuitem', { name: 'Delete by prefix' }).click()
    await page.getByRole('textbox', { name: 'Prefix' }).fill('session:')
    await page.getByRole('button', { name: 'Count the keys' }).click()
    await page.getByText('50 keys have this prefix').waitFor()
    expect(await command('EXISTS', 'session:0')).toBe(1)
    await page.getByLabel('Type 50 to delete them').fill('50')
    await page.getByRole('button', { name: 'Delete 50 keys' }).click()
    await page.getByText('50 keys were deleted.').waitFor()
    expect(await command('EXISTS', 'session:0', 'greeting')).toBe(1)
  })

  it('sends commands, suggests them, keeps a history, and confirms destructive ones', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=data`, 'shop')
    await page.getByText('Send commands').click()
    const box = page.locator('input[aria-label="Command"]')
    await box.fill('hgeta')
    await page.getByRole('option', { name: 'HGETALL' }).waitFor()
    await box.fill('SET "two words" 1')
    await box.press('Enter')
    await page.getByLabel('Replies').getByText('OK').waitFor()
    await box.press('ArrowUp')
    expect(await box.inputValue()).toBe('SET "two words" 1')
    await box.fill('FLUSHALL')
    await box.press('Enter')
    await page.getByRole('button', { name: 'Go back' }).click()
    expect(await command('EXISTS', 'two words')).toBe(1)
    expect(await problemsOf(page)).toEqual([])
  })
})

describe('the page of a database', () => {
  it.each(['overview', 'backups', 'settings'])(
    '%s is accessible, fits the window and causes no refused request',
    async (tab) => {
      await browser.enter(`${place}?tab=${tab}`, 'shop')
      await browser.page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
      expect(await problemsOf(browser.page)).toEqual([])
      expect(browser.refused).toEqual([])
    },
  )

  it('fits a phone', async () => {
    await browser.page.setViewportSize(PHONE)
    for (const tab of ['overview', 'usage', 'data', 'users', 'settings']) {
      await browser.visit(`${place}?tab=${tab}`, 'shop')
      expect(await tooWide(browser.page)).toEqual([])
    }
    await browser.page.setViewportSize(DESKTOP)
  })

  it('fits a phone with the longest name', async () => {
    const rename = (name: string) => homeport.api('POST', `/v2/redis/rename/${place.split('/').at(-1)}`, { name })
    const name = 'a-name-without-blanks-'.repeat(6).slice(0, 128)
    await rename(name)
    await browser.page.setViewportSize(PHONE)
    await browser.load(place, name)
    const crumb = browser.page.getByRole('navigation', { name: 'Breadcrumbs' }).getByText(name)
    const box = await crumb.boundingBox()
    expect((box?.x ?? 0) + (box?.width ?? Number.POSITIVE_INFINITY)).toBeLessThanOrEqual(PHONE.width)
    await browser.page.setViewportSize(DESKTOP)
    await rename('shop')
  })

  it('goes back to the list with its search', async () => {
    const { page } = browser
    await browser.visit('/databases', 'Databases')
    await page.getByLabel('Search by name').fill('sho')
    await page.getByRole('link', { name: 'shop' }).click()
    await heading(page, 'shop').waitFor()
    await page.goBack()
    await heading(page, 'Databases').waitFor()
    expect(await page.getByLabel('Search by name').inputValue()).toBe('sho')
  })

  it('creates a user with the selected rights only, and shows the password once', async () => {
    const { page } = browser
    await command('SET', 'news:1', 'hello')
    await browser.enter(`${place}?tab=users`, 'shop')
    await page.getByRole('cell', { name: 'default_ro' }).waitFor()
    await page.getByRole('button', { name: 'Create a user' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('default')
    await dialog.getByText('This name belongs to a built-in user').waitFor()
    await dialog.getByLabel('Name').fill('reporting')
    await dialog.getByLabel('Keys').fill('news:*')
    await dialog.getByText('ACL SETUSER reporting on resetkeys ~news:*').waitFor()
    expect(await problemsOf(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Create the user' }).click()
    token = (await page.getByLabel('REST token').textContent()) ?? ''
    expect(await problemsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'I have copied them' }).click()
    expect(await asUser('GET', 'news:1')).toBe('hello')
    expect(await asUser('GET', 'greeting')).toMatch(/^NOPERM/)
    expect(await asUser('SET', 'news:1', 'x')).toMatch(/^NOPERM/)
  })

  it('changes the rights of the user, resets the password, and deletes the user', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=users`, 'shop')
    await page.getByRole('button', { name: 'reporting', exact: true }).press('Enter')
    await page.getByRole('dialog').getByRole('combobox', { name: 'Commands' }).click()
    await page.getByRole('option', { name: 'Read and write' }).click()
    await page.getByRole('button', { name: 'Change the rights' }).click()
    await page.getByRole('cell', { name: 'Read and write' }).waitFor()
    expect(await asUser('SET', 'news:1', 'hello again')).toBe('OK')
    const act = async (name: string) => {
      await page.getByRole('button', { name: 'Actions for reporting' }).click()
      await page.getByRole('menuitem', { name }).click()
      await page.getByRole('dialog').getByRole('button', { name }).click()
    }
    await page.getByRole('button', { name: 'Actions for reporting' }).press('Enter')
    await page.getByRole('menuitem', { name: 'Delete the user' }).press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('button[aria-label="Actions for reporting"]:focus').waitFor()
    await act('Reset the password')
    const fresh = (await page.getByLabel('REST token').textContent()) ?? ''
    await page.getByRole('button', { name: 'I have copied them' }).click()
    expect(await asUser('GET', 'news:1')).toMatch(/^WRONGPASS/)
    token = fresh
    expect(await asUser('GET', 'news:1')).toBe('hello again')
    await act('Delete the user')
    await page.getByRole('button', { name: 'reporting', exact: true }).waitFor({ state: 'detached' })
    expect(await asUser('GET', 'news:1')).toMatch(/^WRONGPASS/)
  })

  it('lets a read-only key open keys by name, and offers no changes', async () => {
    const { body } = await homeport.api('POST', '/v2/apikeys', { name: 'reader', read_only: true })
    const { api_key } = body as { api_key: string }
    const context = await newContext(browser.context.browser(), homeport.apiUrl)
    const page = await context.newPage()
    await signInAt(page, { ...homeport, credentials: { ...homeport.credentials, apiKey: api_key } })
    await follow(page, `${place}?tab=data`, 'shop')
    await page.getByLabel('Key name').fill('greeting')
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByLabel('Value').getByText('hello', { exact: true }).waitFor()
    expect(await problemsOf(page)).toEqual([])
    expect(await page.getByRole('button', { name: 'Delete the key' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Export the key' }).click()
    await page.getByRole('button', { name: 'Export the keys' }).click()
    await page.getByText('1 key exported').waitFor()
    await follow(page, `${place}?tab=users`, 'shop')
    await page.getByText('This key is read-only').waitFor()
    await context.close()
  })

  it('creates a backup, and restores it after the name was typed', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=backups`, 'shop')
    await page.getByRole('button', { name: 'Create a backup' }).first().click()
    await page.getByLabel('Name').fill('before')
    await page.getByRole('dialog').getByRole('button', { name: 'Create the backup' }).click()
    await page.getByRole('cell', { name: 'completed' }).waitFor()
    await command('DEL', 'greeting')
    await page.getByRole('button', { name: 'Actions for before' }).click()
    await page.getByRole('menuitem', { name: 'Restore' }).click()
    await page.getByLabel('Type shop to continue').fill('shop')
    await page.getByRole('button', { name: 'Replace the data' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await command('GET', 'greeting')).toBe('hello')
  })

  it('settings follow changes of others until the user types', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=settings`, 'shop')
    const budget = page.getByLabel('Monthly budget')
    await budget.waitFor()
    const change = (to: number) =>
      homeport.api('PATCH', `/v2/redis/update-budget/${place.split('/').at(-1)}`, { budget: to })
    await change(7)
    await waitFor(async () => (await budget.inputValue()) === '$7', {
      what: 'the budget',
      deadlineMs: DEADLINE_MS,
      everyMs: 500,
    })
    expect(await page.getByRole('button', { name: 'Save' }).nth(1).isDisabled()).toBe(true)
    await change(0)
  })

  it('changes settings, and deletes only after the name was typed', async () => {
    const { page } = browser
    await browser.enter(`${place}?tab=settings`, 'shop')
    await page.getByLabel('Evict keys when the database is full').click()
    await page.getByText('The setting was changed.').waitFor()
    expect((await record()).eviction).toBe(true)
    await page.getByLabel('Name').fill('the  store') // Two spaces, which look like one.
    await page.getByRole('button', { name: 'Save' }).first().click()
    await heading(page, 'the store').waitFor()
    await page.getByRole('button', { name: 'Delete the database' }).click()
    const remove = page.getByRole('dialog').getByRole('button', { name: 'Delete the database' })
    expect(await remove.isDisabled()).toBe(true)
    await page.getByLabel('Type the store to continue').fill('the store')
    await remove.click()
    await page.getByText('No databases yet').waitFor()
    expect((await homeport.api('GET', '/v2/redis/databases')).body).toEqual([])
    // The title is that of the cached record, its state is not shown.
    await browser.enter(place, 'the store')
    await page.getByText('Database not found').waitFor()
    expect(await page.getByText(/^(Awake|Asleep)$/).count()).toBe(0)
    await page.getByRole('link', { name: 'All databases' }).click()
    await heading(page, 'Databases').waitFor()
  })
})

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
