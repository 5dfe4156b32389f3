import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { problemsOf } from './browser.js'

/** Opens what the dialog of a new database hides, sees its price and its errors, and leaves all as it was. */
export async function looksUnderMore(page: Page, dialog: Locator): Promise<void> {
  await dialog.getByRole('button', { name: 'More…' }).press('Enter')
  await dialog.getByLabel('Monthly budget').fill('5')
  await dialog.getByText('It counts $0.20 per 100,000 commands').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await dialog.getByLabel('Monthly budget').fill('')
  await dialog.getByRole('combobox', { name: 'Read regions' }).click()
  for (const name of [/^eu-west-1/, /^us-west-1/]) await page.getByRole('option', { name }).click()
  await dialog.getByRole('combobox', { name: 'Read regions' }).press('Tab')
  await dialog.getByRole('combobox', { name: 'Plan' }).click()
  await page.getByRole('option', { name: 'Free' }).click()
  await dialog.getByRole('button', { name: 'Less' }).click()
  // What has an error is shown.
  await dialog.getByRole('button', { name: 'Create the database' }).click()
  await dialog.getByText('The Free plan has at most one read region').waitFor()
  await dialog.getByRole('combobox', { name: 'Plan' }).click()
  await page.getByRole('option', { name: 'Pay as you go' }).click()
  for (const key of ['Backspace', 'Backspace', 'Tab']) {
    await dialog.getByRole('combobox', { name: 'Read regions' }).press(key)
  }
}
