import { beforeAll, describe, expect, it } from 'vitest'
import { basicOf, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
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

beforeAll(async () => {
  homeport = await startHomeport()
  browser = await signIn(homeport)
  const shop = await create({ database_name: 'shop', read_regions: ['us-east-1'] })
  database = shop
  await create({ database_name: 'Archive', plan: 'fixed_250mb' })
  await create({ database_name: 'staging', platform: 'gcp', primary_region: 'europe-west1' })
})

interface Made {
  readonly database_id: string
  readonly rest_url: string
  readonly rest_token: string
}

let database: Made

const create = async (some: object): Promise<Made> =>
  (await homeport.api('POST', '/v2/redis/database', { platform: 'aws', primary_region: 'eu-central-1', ...some }))
    .body as Made

async function command(...line: (string | number)[]): Promise<unknown> {
  const headers = { authorization: `Bearer ${database.rest_token}` }
  const response = await fetch(database.rest_url, { method: 'POST', headers, body: JSON.stringify(line) })
  return ((await response.json()) as { result: unknown }).result
}

describe('the list of databases', () => {
  const names = () => browser.page.getByRole('table', { name: 'Databases' }).getByRole('link').allTextContents()
  const shows = (expected: string[]) =>
    waitFor(async () => (await names()).join() === expected.join(), {
      what: `the databases ${expected.join(', ')}`,
      deadlineMs: DEADLINE_MS,
    })

  it('is sorted by its headings with the keyboard, and the address keeps the order', async () => {
    const { page } = browser
    await command('SET', 'some', 'x'.repeat(100_000))
    await browser.visit('/databases', 'Databases')
    await shows(['shop', 'Archive', 'staging'])
    const heading = (name: string) => page.getByRole('columnheader', { name })
    expect(await heading('Created').getAttribute('aria-sort')).toBe('ascending')
    await page.getByRole('button', { name: 'Name', exact: true }).press('Enter')
    await shows(['Archive', 'shop', 'staging'])
    await page.getByRole('button', { name: 'Name', exact: true }).press('Enter')
    await shows(['staging', 'shop', 'Archive'])
    expect(await heading('Name').getAttribute('aria-sort')).toBe('descending')
    expect(await heading('State').getAttribute('aria-sort')).toBe('none')
    await page.reload()
    await shows(['staging', 'shop', 'Archive'])
    expect(await problemsOf(page)).toEqual([])
  })

  it('is filtered by every column, and keeps the filters while a database is open', async () => {
    const { page } = browser
    await browser.enter('/databases', 'Databases')
    const choose = async (label: string, option: string) => {
      await page.getByRole('combobox', { name: label }).click()
      await page.getByRole('option', { name: option, exact: true }).click()
    }
    await choose('Region', 'eu-central-1')
    await shows(['shop', 'Archive'])
    await choose('Plan', 'Fixed')
    await shows(['Archive'])
    await choose('Requests this month', 'No requests')
    await shows(['Archive'])
    await page.getByRole('link', { name: 'Archive' }).click()
    await heading(page, 'Archive').waitFor()
    await page.goBack()
    await shows(['Archive'])
    await choose('State', 'Suspended')
    await page.getByText('No databases match the filters').waitFor()
    expect(await problemsOf(page)).toEqual([])
  })

  it('fits a phone', async () => {
    await browser.page.setViewportSize(PHONE)
    await browser.enter('/databases', 'Databases')
    expect(await tooWide(browser.page)).toEqual([])
    await browser.page.setViewportSize(DESKTOP)
  })
})

describe('the form of a new database', () => {
  it('has settings with defaults under More, and opens them when the server would refuse one', async () => {
    const { page } = browser
    await browser.enter('/databases?create=true', 'Databases')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('fresh')
    await dialog.getByText('Plan Pay as you go · no read regions').waitFor()
    const more = dialog.getByRole('button', { name: 'More settings' })
    await more.press('Enter')
    await dialog.getByText('Commands per second').waitFor()
    await dialog.getByLabel('Monthly budget').fill('20')
    await dialog.getByText('$0.20 per 100,000 commands').waitFor()
    expect(await problemsOf(page)).toEqual([])
    const choose = async (field: string, ...options: string[]) => {
      await dialog.getByRole('combobox', { name: field }).click()
      for (const name of options) await page.getByRole('option', { name }).click()
      await page.keyboard.press('Tab')
    }
    await choose('Read regions', 'eu-west-1', 'eu-west-2')
    await choose('Plan', 'Free')
    await more.press('Enter')
    await dialog.getByText('Plan Free · 2 read regions').waitFor()
    await dialog.getByRole('button', { name: 'Create the database' }).click()
    await dialog.getByText('The Free plan has at most one read region').waitFor()
    expect(await more.getAttribute('aria-expanded')).toBe('true')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
  })
})

describe('the data browser', () => {
  const openData = async () => {
    await browser.enter(`/databases/${database.database_id}?tab=data`, 'shop')
    await browser.page.getByRole('treegrid', { name: 'Keys' }).waitFor()
  }
  const tool = (name: string) =>
    browser.page.getByRole('radiogroup', { name: 'Data tools' }).getByText(name, { exact: true }).click()
  const press = async (...keys: string[]) => {
    for (const key of keys) await browser.page.keyboard.press(key)
  }

  it('shows keys as a tree, and selects, changes and deletes exactly some with the keyboard', async () => {
    const { page } = browser
    const users = Array.from({ length: 12 }, (_, i) => [`user:${i + 1}`, 'x'])
    await command('FLUSHALL')
    await command('MSET', ...users.flat(), 'about', 'x')
    await openData()
    await page.getByRole('button', { name: 'Show as a tree' }).press('Enter')
    const grid = page.getByRole('treegrid', { name: 'Keys' })
    await grid.getByRole('row', { name: 'user: 12 keys' }).waitFor()
    await grid.focus()
    await press('ArrowRight', 'ArrowDown', 'ArrowDown', 'Space', 'Shift+ArrowDown', 'Shift+ArrowDown', 'Shift+ArrowUp')
    await page.getByText('2 keys selected').waitFor()
    await grid.getByRole('row', { name: /user:3 .*string/ }).waitFor()
    expect(await problemsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'Expiry' }).press('Enter')
    expect(await problemsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'Set the expiry' }).click()
    await page.getByText('2 keys expire now.').waitFor()
    await grid
      .getByText(/^(59m|1h)/)
      .first()
      .waitFor()
    expect(await command('TTL', 'user:2')).toBeGreaterThan(3_000)
    expect(await command('TTL', 'user:4')).toBe(-1)
    await grid.focus()
    await press('Delete')
    await page.getByText('2 keys are selected. Nothing is deleted yet.').waitFor()
    await page.getByLabel('Type 2 to delete them').fill('2')
    await press('Enter')
    await page.getByText('2 keys were deleted.').waitFor()
    await grid.getByRole('row', { name: 'user: 10 keys' }).waitFor()
    expect(await command('EXISTS', 'user:1', 'user:2', 'user:3', 'user:4')).toBe(2)
    await page.reload()
    await grid.getByRole('row', { name: 'user: 10 keys' }).waitFor()
    await page.getByLabel('Separator').fill('-')
    await grid.getByRole('row', { name: /user:10 / }).waitFor()
    await page.getByRole('button', { name: 'Show as a list' }).click()
  })

  it('exports keys of every kind to a file, and imports them with what it did to each', async () => {
    const { page } = browser
    await command('FLUSHALL')
    await command('SET', 'text', 'value', 'EX', 10_000)
    await command('XADD', 'stream', '1-1', 'level', 'info')
    await fetch(`${database.rest_url}/set/%ff%00/binary?_token=${database.rest_token}`, { method: 'POST' })
    const before = await command('DUMP', 'stream')
    await openData()
    await page.getByRole('button', { name: 'Actions for the keys' }).click()
    await page.getByRole('menuitem', { name: 'Export all keys' }).click()
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export the keys' }).click()
    const file = await (await saving).path()
    await page.getByText('3 keys exported; the browser saves the file.').waitFor()
    expect(await problemsOf(page)).toEqual([])
    await press('Escape')
    await command('FLUSHALL')
    await command('SET', 'text', 'newer')
    await page.getByRole('button', { name: 'Actions for the keys' }).click()
    await page.getByRole('menuitem', { name: 'Import keys' }).click()
    await page.locator('input[type=file]').setInputFiles(file)
    await page.getByRole('button', { name: 'Import the keys' }).click()
    await page.getByText('2 imported, 1 skipped').waitFor()
    expect(await problemsOf(page)).toEqual([])
    expect([await command('GET', 'text'), await command('DUMP', 'stream')]).toEqual(['newer', before])
    await press('Escape')
    await page.getByRole('row', { name: /\\xff\\x00 .*string/ }).click()
    await page.getByRole('heading', { name: '\\xff\\x00' }).waitFor()
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    await page.getByRole('textbox', { name: 'Value' }).fill('written')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The value was saved.').waitFor()
    await page.getByText('written', { exact: true }).waitFor()
    await page.getByRole('checkbox', { name: 'Select \\xff\\x00' }).click()
    await page.getByRole('group', { name: 'Selected keys' }).getByRole('button', { name: 'Delete' }).click()
    await page.getByLabel('Type 1 to delete it').fill('1')
    await press('Enter')
    await page.getByText('1 key was deleted.').waitFor()
    expect(await command('DBSIZE')).toBe(2)
  })

  it('estimates the memory by prefix, profiles commands, and shows slow ones', async () => {
    const { page } = browser
    await command('MSET', 'cart:1', 'x'.repeat(10_000), 'cart:2', 'x', 'user:1', 'x')
    await openData()
    await tool('Memory')
    await page.getByLabel('Separator').fill(':')
    await page.getByRole('button', { name: 'Take a sample' }).click()
    await page.getByText('All 5 keys were looked at').waitFor()
    await page.getByRole('row', { name: /^cart: \d.* 2 / }).waitFor()
    expect(await problemsOf(page)).toEqual([])
    await tool('Profiler')
    await page.getByLabel('Filter').fill('profiled')
    await page.getByRole('button', { name: 'Start' }).click()
    await waitFor(
      async () => {
        await command('GET', 'profiled:1')
        await command('GET', 'other')
        return (await page.getByRole('cell', { name: '"GET" "profiled:1"' }).count()) > 0
      },
      { what: 'the profiled command', deadlineMs: DEADLINE_MS },
    )
    await page.getByText(/did not match the filter/).waitFor()
    expect(await problemsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText(/^Ended: /).waitFor()
    await tool('Slow log')
    await page.getByText('Recorded from 10ms on').waitFor()
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByLabel('Record commands that take at least').fill('0')
    await page.getByRole('button', { name: 'Set', exact: true }).click()
    await page.getByText('Recorded from 0ms on').waitFor()
    expect(await problemsOf(page)).toEqual([])
    await command('KEYS', 'slow:*')
    await page.getByRole('button', { name: 'Refresh the slow log' }).click()
    await page.getByRole('cell', { name: 'KEYS slow:*' }).waitFor()
    await browser.page.setViewportSize(PHONE)
    for (const name of ['Memory', 'Profiler', 'Slow log', 'Browse keys']) {
      await page.getByRole('combobox', { name: 'Data tools' }).click()
      await page.getByRole('option', { name }).click()
      expect(await tooWide(page)).toEqual([])
    }
    await browser.page.setViewportSize(DESKTOP)
  })
})

it('the console adds no field over one that exists', async () => {
  const { page } = browser
  await command('HSET', 'kept', 'field', 'first')
  await browser.enter(`/databases/${database.database_id}?tab=data`, 'shop')
  await page.getByLabel('Pattern').fill('kept')
  await page.getByRole('button', { name: 'kept', exact: true }).click()
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Field').fill('field')
  await dialog.getByLabel('Value').fill('second')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await dialog.getByRole('alert').getByText('the field exists already').waitFor()
  expect(await command('HGET', 'kept', 'field')).toBe('first')
  await dialog.getByLabel('Field').fill('other')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await command('HGET', 'kept', 'other')).toBe('second')
})

it('the console offers members of a team what their roles may do', async () => {
  const { body } = await homeport.api('POST', '/v2/team', { team_name: 'crew', copy_cc: false })
  const { team_id } = body as { team_id: string }
  const pageOf = async (member_role: 'dev' | 'finance') => {
    const member_email = `${member_role}@example.com`
    await homeport.api('POST', '/v2/teams/member', { team_id, member_email, member_role })
    const made = await homeport.api('POST', '/v2/apikeys', { name: member_role, team_id, member_email })
    const { api_key } = made.body as { api_key: string }
    const context = await newContext(browser.context.browser(), homeport.apiUrl)
    const page = await context.newPage()
    await signInAt(page, {
      ...homeport,
      credentials: { ...homeport.credentials, email: member_email, apiKey: api_key },
    })
    return { page, api_key, member_email }
  }
  const { page: dev, api_key, member_email } = await pageOf('dev')
  const authorization = basicOf(member_email, api_key)
  const made = await fetch(`${homeport.apiUrl}/v2/redis/database`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ platform: 'aws', primary_region: 'eu-central-1', database_name: 'of-the-crew' }),
  })
  const { database_id } = (await made.json()) as Made
  const { page: finance } = await pageOf('finance')

  await follow(dev, '/api-keys', 'API keys')
  await dev.getByRole('cell', { name: 'finance@example.com' }).waitFor()
  await dev.getByRole('button', { name: 'Rotate dev' }).waitFor()
  expect(await dev.getByRole('button', { name: 'Rotate finance' }).count()).toBe(0)
  await follow(dev, '/queue-tokens', 'Queue tokens')
  await dev.getByText('No queue tokens yet').waitFor()
  expect(await dev.getByRole('button', { name: 'Create a token' }).count()).toBe(0)

  await follow(finance, `/databases/${database_id}?tab=data`, 'of-the-crew')
  await finance.getByText('Your role sees no data').waitFor()
  expect(await problemsOf(finance)).toEqual([])
  await finance.getByRole('tab', { name: 'Overview' }).click()
  await finance.getByText('not shown to your key').first().waitFor()
  expect(await finance.getByRole('tab', { name: 'redis-cli' }).count()).toBe(0)
  for (const page of [dev, finance]) await page.context().close()
})

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
