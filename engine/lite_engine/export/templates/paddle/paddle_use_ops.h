#pragma once
// Nothing to register: the runtime finds its own. Here for programs that include it.
