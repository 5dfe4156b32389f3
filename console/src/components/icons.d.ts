/** The Tabler icon of a name, such as `icon:trash`; `console/icons.ts` makes these modules. */
declare module 'icon:*' {
  import type { ComponentType } from 'react'
  import type { IconProps } from './icon.js'

  const Icon: ComponentType<IconProps>
  export default Icon
}
