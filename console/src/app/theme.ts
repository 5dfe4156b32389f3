import {
  type ActionIconProps,
  type BadgeProps,
  type ButtonProps,
  type CSSVariablesResolver,
  createTheme,
  type DrawerProps,
  localStorageColorSchemeManager,
  type MantineColorsTuple,
  type MenuProps,
  type ModalProps,
  type NotificationProps,
  type NumberInputProps,
  type PasswordInputProps,
  type SegmentedControlProps,
  type SelectProps,
  type TableProps,
  type TextareaProps,
  type TextInputProps,
  type TooltipProps,
} from '@mantine/core'

/** The colour of the sea in a harbour: calm, and dark enough for white text from shade 7 on. */
const harbour: MantineColorsTuple = [
  '#e8f4f8',
  '#d3e6ee',
  '#a8cddd',
  '#79b3cc',
  '#549dbe',
  '#3c8fb5',
  '#2c88b2',
  '#0f6582',
  '#0d5872',
  '#0a465b',
]

/** Bluish greys of the dark theme, so that panels, inputs and lines match. */
const dark: MantineColorsTuple = [
  '#d0d7de',
  '#b7c0c9',
  '#929ca7',
  '#6e7985',
  '#3a424b',
  '#2f363d',
  '#22272d',
  '#1a1e23',
  '#15191d',
  '#101317',
]

const radius = 'md'
const size = 'sm'

/** The library renders the title bar of a dialog as a `header`. Without a role, it would be a second banner of the page. */
const DIALOG_PARTS = { header: { role: 'presentation' } }

/** Menus and other popups of the shell and its pages are rendered inside the main landmark. */
const IN_PAGE = { target: '#content' }

/** `public/color-scheme.js` reads the same key before the first paint. */
export const colorSchemes = localStorageColorSchemeManager({ key: 'homeport-color-scheme' })

/** Default properties of a component. `Component.extend` would do the same, but load the component with the theme. */
const defaults = <Props>(defaultProps: Partial<Props>) => ({ defaultProps })

/** The theme. Pages choose components, not colours. */
export const theme = createTheme({
  primaryColor: 'harbour',
  primaryShade: { light: 7, dark: 7 },
  colors: { harbour, dark },
  defaultRadius: radius,
  fontFamily: 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontWeight: '650',
    sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.125rem' }, h3: { fontSize: '1rem' } },
  },
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  components: {
    ActionIcon: defaults<ActionIconProps>({ variant: 'subtle', color: 'gray' }),
    Badge: defaults<BadgeProps>({ variant: 'light', radius: 'sm', tt: 'none', fw: 550 }),
    Button: defaults<ButtonProps>({ size }),
    Drawer: defaults<DrawerProps>({ closeButtonProps: { 'aria-label': 'Close' }, attributes: DIALOG_PARTS }),
    // By default, the library adds a placeholder for the initial focus, which is not allowed inside a menu.
    Menu: defaults<MenuProps>({ portalProps: IN_PAGE, withInitialFocusPlaceholder: false }),
    Modal: defaults<ModalProps>({
      centered: true,
      closeButtonProps: { 'aria-label': 'Close' },
      attributes: DIALOG_PARTS,
    }),
    Notification: defaults<NotificationProps>({
      closeButtonProps: { 'aria-label': 'Close' },
      styles: { description: { color: 'var(--mantine-color-dimmed)' } },
    }),
    NumberInput: defaults<NumberInputProps>({ size }),
    PasswordInput: defaults<PasswordInputProps>({ size }),
    Select: defaults<SelectProps>({ size, allowDeselect: false, checkIconPosition: 'right' }),
    SegmentedControl: defaults<SegmentedControlProps>({ size }),
    Table: defaults<TableProps>({ verticalSpacing: 7, horizontalSpacing: 'sm', fz: 'sm' }),
    Textarea: defaults<TextareaProps>({ size }),
    TextInput: defaults<TextInputProps>({ size }),
    Tooltip: defaults<TooltipProps>({
      withArrow: true,
      openDelay: 250,
      portalProps: IN_PAGE,
      events: { hover: true, focus: true, touch: true },
    }),
  },
})

/** Dimmed and error texts, and titles of warnings, keep a contrast of 4.5 to 1 on every background that the pages use. */
export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#58626d',
    '--mantine-color-placeholder': '#69727c',
    '--mantine-color-error': '#c01f1f',
    '--mantine-color-anchor': '#0d5872',
    '--mantine-color-yellow-light-color': '#7a4b00',
    '--mantine-color-orange-light-color': '#8f3206',
    '--hp-ground': '#f6f8fa',
    '--hp-surface': '#ffffff',
    '--hp-line': '#dfe4e9',
    '--hp-code': '#f1f4f7',
    '--hp-ok': '#2b8a3e',
    '--hp-busy': '#0f6582',
    '--hp-warn': '#c05e00',
    '--hp-bad': '#c92a2a',
    '--hp-idle': '#868e96',
  },
  dark: {
    '--mantine-color-dimmed': '#a3adb8',
    '--mantine-color-placeholder': '#8f99a3',
    '--mantine-color-error': '#ff8f8f',
    '--mantine-color-anchor': '#79b3cc',
    '--mantine-color-body': '#171b20',
    '--mantine-color-default': '#22272d',
    '--mantine-color-default-border': '#3a424b',
    '--hp-ground': '#121519',
    '--hp-surface': '#1a1e23',
    '--hp-line': '#2f363d',
    '--hp-code': '#22272d',
    '--hp-ok': '#51cf66',
    '--hp-busy': '#54a9cc',
    '--hp-warn': '#ffa94d',
    '--hp-bad': '#ff6b6b',
    '--hp-idle': '#868e96',
  },
})
