import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { atCleanup, type RunningHomeport } from '../../support/index.js'

/** The deadline for a page to show its content, milliseconds: for the slowest machine, not a performance target. */
export const DEADLINE_MS = 60_000
/** The narrowest supported desktop window. */
export const DESKTOP = { width: 1280, height: 800 }
/** A phone in portrait orientation. */
export const PHONE = { width: 390, height: 844 }

/** The minified build: half as large to send and to parse. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const FINDER = new URL('../../../scripts/lib/browser.mjs', import.meta.url).href

/** A browser that is signed in to the console with the first account. */
export interface SignedIn {
  readonly context: BrowserContext
  readonly page: Page
  /** Exceptions and errors on the browser's console so far, such as blocked scripts. */
  readonly complaints: readonly string[]
  /** Reads that the server has refused so far: status and path. */
  readonly refused: readonly string[]
  /** Loads a page of the console by its path and waits for its title. */
  open(path: string, title: string | RegExp): Promise<void>
  /**
   * Goes to a page as a link of the console does, without a reload of the console, which takes three times the processor time.
   * The page may show data of the last two seconds.
   */
  visit(path: string, title: string | RegExp): Promise<void>
}

/** Starts the system's browser; cleanup closes it. */
export async function launchBrowser(): Promise<Browser> {
  const { findBrowser }: { findBrowser: () => string | undefined } = await import(FINDER)
  const executablePath = findBrowser()
  if (executablePath === undefined) throw new Error('no Chromium is installed; "npm test" installs one, or says how')
  // Without its sandbox, the browser also runs as root and in containers; it opens only our own pages.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  atCleanup(() => browser.close())
  return browser
}

/** Starts a browser and signs in by typing e-mail and key, as a user would. */
export async function signIn(homeport: Pick<RunningHomeport, 'apiUrl' | 'credentials'>): Promise<SignedIn> {
  const browser = await launchBrowser()
  const context = await browser.newContext({ viewport: DESKTOP, baseURL: homeport.apiUrl, reducedMotion: 'reduce' })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  context.setDefaultTimeout(DEADLINE_MS)
  const page = await context.newPage()
  const complaints = watch(page)
  const open = async (path: string, title: string | RegExp) => {
    await page.goto(path)
    await heading(page, title).waitFor()
  }
  const visit = async (path: string, title: string | RegExp) => {
    // As a string: this file is compiled for Node.js, while this script runs in the page.
    await page.evaluate(`history.pushState({}, '', ${JSON.stringify(path)})`)
    await heading(page, title).waitFor()
  }
  await signInAt(page, homeport)
  const refused: string[] = []
  page.on('response', (response) => {
    const isRead = response.request().method() === 'GET'
    if (isRead && response.status() >= 400) refused.push(`${response.status()} ${new URL(response.url()).pathname}`)
  })
  return { context, page, complaints, refused, open, visit }
}

/** Signs in to the console of a server in an existing page. */
export async function signInAt(
  page: Page,
  { apiUrl, credentials }: Pick<RunningHomeport, 'apiUrl' | 'credentials'>,
): Promise<void> {
  await page.goto(`${apiUrl}/sign-in`)
  await page.getByLabel('E-mail').fill(credentials.email)
  await page.getByLabel('API key').first().fill(credentials.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading(page, 'Home').waitFor()
}

/** The title of the page. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name })

/** Collects errors of the pages. Error responses of the server are not among them: the pages show those. */
function watch(page: Page): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !/^Failed to load resource: the server responded/.test(text))
      complaints.push(text)
  })
  return complaints
}

/**
 * Problems of the visible page: accessibility violations (axe, in both themes) and horizontal overflow. Tests expect an
 * empty list.
 */
export async function problemsOf(page: Page): Promise<string[]> {
  const light = await axeProblems(page, 'light', 'preload: false')
  // Both themes differ only in their colours.
  const dark = await axeProblems(page, 'dark', "runOnly: ['color-contrast']")
  await page.emulateMedia({ colorScheme: 'light' })
  return [...light, ...dark, ...(await tooWide(page))]
}

async function axeProblems(page: Page, colorScheme: 'light' | 'dark', options: string): Promise<string[]> {
  await page.emulateMedia({ colorScheme })
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' })
  await page.evaluate(SETTLED)
  // Half a megabyte to parse: once per document is enough.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE)
  // As strings: this file is compiled for Node.js, while these scripts run in the page.
  const violations = await page.evaluate<Violation[]>(
    `axe.run(document, { ${options}, ${LEAN} }).then(({ violations }) => violations.map(({ id, nodes }) =>
      ({ id, at: nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary) })))`,
  )
  return violations.flatMap(({ id, at }) => at.slice(0, 3).map((where) => `${colorScheme}: ${id} at ${where}`))
}

/** Options that skip unused results: passed rules, frames and selectors. */
const LEAN = "resultTypes: ['violations'], iframes: false, selectors: false"

/** Waits for colour transitions between the themes. Endless animations are not waited for. */
const SETTLED = `Promise.all(document.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().iterations < 10)
  .map((animation) => animation.finished.catch(() => undefined)))`

interface Violation {
  readonly id: string
  readonly at: readonly string[]
}

/** What does not fit the window: the page, a table, or a text that is cut; tests expect an empty list. */
export async function tooWide(page: Page): Promise<string[]> {
  const excess = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  const cut = await page.evaluate<string[]>(CUT_OFF)
  return [...(excess > 0 ? [`the page is ${excess} px wider than the window`] : []), ...cut]
}

/** Headings, buttons, states and row menus that are cut, and tables that scroll sideways. Code may scroll. */
const CUT_OFF = `[...document.querySelectorAll('main *, [role="dialog"] *')].flatMap((element) => {
  const { overflowX, visibility } = getComputedStyle(element)
  const excess = element.scrollWidth - element.clientWidth
  if (overflowX === 'visible' || visibility === 'hidden' || element.clientWidth <= 1 || excess <= 1) return []
  const scrolls = overflowX !== 'hidden' && element.querySelector('table') !== null
  const isShort = element.matches('h1, h2, h3, th, button, td:has(button), td:has([data-tone]), [data-tone] + *, [role="tab"]')
  return scrolls || isShort ? [element.tagName + ' is cut by ' + excess + ' px: ' + element.textContent.slice(0, 80)] : []
})`
