import { beforeAll, describe, expect, it } from 'vitest'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { DEADLINE_MS, DESKTOP, heading, PHONE, problemsOf, type SignedIn, signIn, tooWide } from './support/browser.js'
import './support/patience.js'

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
    await browser.open('/databases', 'Databases')
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
    await browser.open('/databases', 'Databases')
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
    await browser.open('/databases', 'Databases')
    expect(await tooWide(browser.page)).toEqual([])
    await browser.page.setViewportSize(DESKTOP)
  })
})

describe('the form of a new database', () => {
  it('has settings with defaults under More, and opens them when the server would refuse one', async () => {
    const { page } = browser
    await browser.open('/databases?create=true', 'Databases')
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

it('the pages caused no errors and no browser complaints', () => {
  expect(browser.complaints).toEqual([])
})
